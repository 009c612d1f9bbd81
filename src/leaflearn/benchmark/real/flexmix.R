# A mixture of linear or logistic regressions in which all rows of a group share a component.
# One to five components, three starts each, by BIC. Writes beta (K, 1 + p), sigma and prior (K).
source("json.R")
require_package("flexmix")
set.seed(1)

fixed <- paste0("x", seq_len(p), collapse = " + ")
left <- if (binary) "cbind(y, 1 - y)" else "y"
f <- as.formula(paste(left, "~", fixed, "| g"))
family <- if (binary) "binomial" else "gaussian"
best <- NULL
for (k in 1:5) for (start in 1:(if (k == 1) 1 else 3)) {
  fit <- tryCatch(
    flexmix(
      f, data = d, k = k, model = FLXMRglm(family = family),
      control = list(minprior = 0.02, iter.max = 100)
    ),
    error = function(e) NULL
  )
  if (!is.null(fit) && (is.null(best) || BIC(fit) < BIC(best))) best <- fit
}

pars <- parameters(best)
write_fields(list(
  beta = mat(t(pars[seq_len(p + 1), , drop = FALSE])),
  sigma = num(if (binary) rep(1, ncol(pars)) else pars["sigma", ]),
  prior = num(prior(best))
))
