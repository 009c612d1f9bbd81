# Numbers as JSON, without a package; what is not finite becomes null.
num <- function(v) {
  texts <- ifelse(is.finite(v), formatC(as.numeric(v), digits = 12, format = "g"), "null")
  paste0("[", paste(texts, collapse = ","), "]")
}
mat <- function(m) paste0("[", paste(apply(m, 1, num), collapse = ","), "]")
write_fields <- function(fields) {
  texts <- paste0('"', names(fields), '":', unlist(fields), collapse = ",")
  writeLines(paste0("{", texts, "}"), "result.json")
}

# What Python passes: the table, whether it has two classes, and the columns with random slopes.
require_package <- function(name) {
  if (!requireNamespace(name, quietly = TRUE)) quit(status = 3)
  suppressMessages(library(name, character.only = TRUE))
}
arguments <- commandArgs(trailingOnly = TRUE)
binary <- arguments[1] == "binary"
slopes <- as.integer(strsplit(paste0("", arguments[2]), ",")[[1]])
slopes <- slopes[!is.na(slopes)]
d <- read.csv("table.csv")
d$g <- factor(d$g)
p <- ncol(d) - 2
