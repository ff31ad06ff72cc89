
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
# `x` has the columns whose effects are wanted, `beside` others that are fitted with them, both by row.
# The report's adjusted p is raised where trials exchanged between rows show an effect as large more often.
screened <- function(metric, error, x, beside, compared) {
  own <- trials[trials$metric == metric, ]
  y <- log(own$value)
  replicate <- factor(own$replicate)
  means <- outer(own$replicate, unique(own$replicate), "==") * 1
  x <- x[own$row, , drop = FALSE]
  others <- cbind(means, beside[own$row, , drop = FALSE])
  fit <- lm(y ~ 0 + others + x)
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
    metric = metric, compared = compared, option = colnames(codes), judged_by = error, ratio = exp(effects), low = low,
    high = high, t = t, p = p, p_adjusted = adjusted, row.names = NULL
  )
}

ends <- function(metric, error) screened(metric, error, codes, codes[, 0], "high/low")
# The middle of three levels over the mean of its ends: 1 in the middle, -1 at both ends, beside the effects.
middle <- function(metric) {
  error <- if (judged_by[[metric]] == "replicates") "replicates" else "none"
  screened(metric, error, 1 - 2 * codes^2, codes, "middle/ends")
}

results <- do.call(rbind, c(Map(ends, names(judged_by), judged_by), lapply(curved, middle)))
results <- results[order(match(results$metric, names(judged_by)), results$compared, -abs(log(results$ratio))), ]
write.table(format(results, digits = 12, trim = TRUE), sep = "\t", quote = FALSE, row.names = FALSE)
