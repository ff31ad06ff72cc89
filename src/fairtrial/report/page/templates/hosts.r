
# Random effects over hosts on the log ratios of blocks. The spread of blocks is pooled within hosts; where no host has
# two blocks it is 0 and part of what differs between hosts. tau2 is Paule and Mandel's, the interval Hartung and
# Knapp's with the ad-hoc correction, as `rma(means, variances, method = "PM", test = "adhoc")` of metafor gives it.
# A further host's interval is of what it would measure with the median number of blocks, if that is 2 or more.
over_hosts <- function(metric, cell, baseline, arm, paired, family, share, held, size, exchanged = FALSE) {
  x <- pick(metric, cell, baseline)
  y <- pick(metric, cell, arm)
  blocks <- intersect(x$block, y$block)
  at <- x$host[match(blocks, x$block)]
  whole <- paired && length(blocks) > 0 && all(at == y$host[match(blocks, y$block)])
  positive <- all(x$value > 0) && all(y$value > 0)
  k <- length(unique(if (whole) at else c(x$host, y$host)))  # a host without a pair is in no estimate
  if (!whole || !positive || k < 2) return(data.frame(
    hosts = k, tau = NA, p_equal_hosts = NA, like_ratio = NA, like_low = NA, like_high = NA, further_low = NA,
    further_high = NA, like_p = NA))
  d <- log(y$value[match(blocks, y$block)]) - log(x$value[match(blocks, x$block)])
  n <- as.vector(table(at))
  means <- as.vector(tapply(d, at, mean))
  df <- length(d) - k
  noise <- if (df > 0) sum((d - ave(d, at))^2) / df else 0
  variances <- noise / n
  q <- function(tau2) {
    w <- 1 / (variances + tau2)
    sum(w * (means - sum(w * means) / sum(w))^2)
  }
  most <- sum((means - mean(means))^2)
  tau2 <- if (noise > 0 && q(0) <= k - 1) 0 else if (noise == 0) most / (k - 1) else
    uniroot(function(tau2) q(tau2) - (k - 1), c(0, most), tol = 1e-15 * most)$root
  w <- 1 / (variances + tau2)
  centre <- sum(w * means) / sum(w)
  error <- 1 / sqrt(sum(w))
  away <- qt((1 + confidence) / 2, k - 1) * error
  ahead <- qt((1 + confidence) / 2, k - 1) * sqrt(tau2 + noise / floor(median(n)) + error^2)
  foretells <- noise > 0 && median(n) >= 2
  p <- 2 * pt(-abs(centre / error), k - 1)
  data.frame(
    hosts = k, tau = if (noise > 0) sqrt(tau2) else NA,
    p_equal_hosts = if (noise > 0) pf(q(0) / (k - 1), k - 1, df, lower.tail = FALSE) else NA,
    like_ratio = exp(centre), like_low = exp(centre - away), like_high = exp(centre + away),
    further_low = if (foretells) exp(centre - ahead) else NA, further_high = if (foretells) exp(centre + ahead) else NA,
    like_p = if (held) confirmed(p, 0 * means, means, TRUE, size) else p)
}
