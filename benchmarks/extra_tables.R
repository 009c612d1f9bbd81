# Writes public tables of R packages as CSV files for `leaflearn bench real --tables ...`:
#
#     Rscript benchmarks/extra_tables.R FOLDER
#
# FOLDER is `real-extra` in the data folder, which LEAFLEARN_DATA names. On Debian and Ubuntu:
#
#     apt install r-cran-nlme r-cran-mlmrev r-cran-plm r-cran-aer r-cran-geepack r-cran-survival
#
# Rows without a target are left out. Targets with two values become words, because numbers are
# read as quantities.

folder <- commandArgs(trailingOnly = TRUE)[1]
if (is.na(folder)) stop("Name the folder: Rscript benchmarks/extra_tables.R FOLDER")
dir.create(folder, showWarnings = FALSE, recursive = TRUE)

load_table <- function(package, name) {
  place <- new.env()
  data(list = name, package = package, envir = place)
  as.data.frame(get(ls(place)[1], place))
}

save_table <- function(file, table, target) {
  table <- table[!is.na(table[[target]]), ]
  write.csv(table, file.path(folder, file), row.names = FALSE)
  cat(sprintf("%s: %d rows\n", file, nrow(table)))
}

save_table("Milk.csv", load_table("nlme", "Milk"), "protein")
save_table("Oxboys.csv", load_table("nlme", "Oxboys"), "height")
save_table("Spruce.csv", load_table("nlme", "Spruce"), "logSize")
save_table("Soybean.csv", load_table("nlme", "Soybean"), "weight")
save_table("dietox.csv", load_table("geepack", "dietox"), "Weight")
save_table("Guns.csv", load_table("AER", "Guns"), "violent")

wages <- load_table("plm", "Wages")  # 595 persons, seven years each, in this order
wages$person <- rep(seq_len(nrow(wages) / 7), each = 7)
wages$year <- rep(1976:1982, nrow(wages) / 7)
save_table("Wages.csv", wages, "lwage")

save_table("Produc.csv", load_table("plm", "Produc"), "unemp")
save_table("ScotsSec.csv", load_table("mlmRev", "ScotsSec"), "attain")

visits <- survival::pbcseq
save_table("pbcseq.csv", visits, "albumin")

save_table("Contraception.csv", load_table("mlmRev", "Contraception"), "use")
save_table("guImmun.csv", load_table("mlmRev", "guImmun"), "immun")
