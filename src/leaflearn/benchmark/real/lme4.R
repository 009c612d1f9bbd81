# A linear or logistic mixed model with a random intercept and uncorrelated random slopes.
# Writes beta (1 + p), variances and effects of the intercept and the slopes, noise, groups.
source("json.R")
require_package("lme4")

fixed <- paste0("x", seq_len(p), collapse = " + ")
random <- c("(1 | g)", if (length(slopes)) paste0("(0 + x", slopes, " | g)"))
f <- as.formula(paste("y ~", fixed, "+", paste(random, collapse = " + ")))
loosen <- function(control) {
  control(
    optimizer = "nloptwrap", calc.derivs = FALSE, check.nobs.vs.nRE = "ignore",
    check.nobs.vs.rankZ = "ignore", check.rankX = "silent.drop.cols"
  )
}
fit <- suppressWarnings(
  if (binary) {
    glmer(f, d, family = binomial, nAGQ = 0, control = loosen(glmerControl))
  } else {
    lmer(f, d, REML = TRUE, control = loosen(lmerControl))
  }
)

b <- fixef(fit)
beta <- setNames(rep(0, p + 1), c("(Intercept)", paste0("x", seq_len(p))))
beta[names(b)] <- b
vc <- as.data.frame(VarCorr(fit))
vc <- vc[vc$grp != "Residual", ]
columns <- c("(Intercept)", if (length(slopes)) paste0("x", slopes))
re <- ranef(fit)$g
write_fields(list(
  beta = num(beta),
  variances = num(sapply(columns, function(n) vc$vcov[vc$var1 == n][1])),
  noise = num(sigma(fit)^2),
  groups = num(as.numeric(as.character(rownames(re)))),
  effects = mat(as.matrix(re[, columns, drop = FALSE]))
))
