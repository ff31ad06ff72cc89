
# The chance that the largest |t| of k independent estimates with one error of df exceeds t: the maximum modulus.
modulus_p <- function(t, k, df) {
  f <- function(u) -expm1(k * log1p(-pmin(2 * pnorm(-abs(t) * sqrt(qchisq(u, df) / df)), 1 - 1e-16)))
  max(2 * pt(-abs(t), df), integrate(f, 0, 1, rel.tol = 1e-8, subdivisions = 1000)$value)
}
step_down <- function(t, df) {
  adjusted <- numeric(length(t))
  largest <- 0
  for (place in seq_along(t)) {
    at <- order(-abs(t))[place]
    largest <- max(largest, modulus_p(t[at], length(t) - place + 1, df))
    adjusted[at] <- largest
  }
  adjusted
}

# Lenth's pseudo standard error of effects that have no other error.
pseudo_error <- function(effects) {
  guess <- 1.5 * median(abs(effects))
  1.5 * median(abs(effects)[abs(effects) < 2.5 * guess])
}

# Codes are -1 and 1, so an effect, high over low, is twice a coefficient. Replicates have means of their own.
# The report's adjusted p is raised where trials exchanged between rows show an effect as large more often.
screened <- function(metric, error) {
  own <- trials[trials$metric == metric, ]
  x <- codes[own$row, , drop = FALSE]
  y <- log(own$value)
  replicate <- factor(own$replicate)
  fit <- if (nlevels(replicate) > 1) lm(y ~ replicate + x) else lm(y ~ x)
  k <- ncol(x)
  effects <- 2 * tail(coef(fit), k)
  unit <- 2 * sqrt(tail(diag(summary(fit)$cov.unscaled), k))
  t <- p <- adjusted <- low <- high <- rep(NA_real_, k)
  if (error == "Lenth") {
    t <- effects / pseudo_error(effects)  # the report's quantiles are simulated; here are none
  } else if (error != "none") {
    row <- factor(own$row)
    whole <- if (error == "replicates") lm(y ~ replicate + row) else fit
    df <- whole$df.residual
    errors <- sqrt(sum(residuals(whole)^2) / df) * unit
    t <- effects / errors
    p <- 2 * pt(-abs(t), df)
    adjusted <- step_down(t, df)
    reach <- qt((1 + confidence) / 2, df) * errors
    low <- exp(effects - reach)
    high <- exp(effects + reach)
  }
  data.frame(
    metric = metric, option = colnames(codes), judged_by = error, ratio = exp(effects), low = low, high = high,
    t = t, p = p, p_adjusted = adjusted, row.names = NULL
  )
}

results <- do.call(rbind, Map(screened, names(judged_by), judged_by))
results <- results[order(match(results$metric, names(judged_by)), -abs(log(results$ratio))), ]
write.table(format(results, digits = 12, trim = TRUE), sep = "\t", quote = FALSE, row.names = FALSE)
