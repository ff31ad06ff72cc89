
# Everything below is base R and reads nothing but the data above.
pick <- function(metric, cell, arm) {
  for (r in records) if (r$metric == metric && r$cell == cell && r$arm == arm) return(r)
  stop("no data for ", metric, " ", cell, " ", arm)
}

# A test that cannot be computed (too few values, no variance) gives NA and counts as p = 1. Values that have no
# logarithm have no ratio either; their differences are tested instead. Heaps of zeros and differences that do not vary
# have no t test: as in the report, arms are exchanged within blocks. The report does it by random choices where there
# are many blocks, so its p is near the one here. Without blocks it shuffles values over arms, and it widens intervals
# of values known by histogram class; this script gives the plain t tests of both.
t_test <- function(...) tryCatch(t.test(..., conf.level = confidence), error = function(e) NULL)
number <- function(test, get) {
  found <- if (is.null(test)) NA else unname(get(test))
  if (is.nan(found)) NA else found
}

# Values on the scale that decides, and what of them only rounding tells apart made equal: ranks would see it.
settled <- function(x, rounding) {
  at <- order(abs(x))
  sizes <- abs(x)[at]
  x[at] <- sign(x[at]) * cummax(ifelse(diff(c(0, sizes)) > rounding, sizes, 0))
  x
}
decided_on <- function(a, b, paired, positive) {
  if (positive) {
    a <- log(a)
    b <- log(b)
  }
  rounding <- 10 * .Machine$double.eps * max(as.numeric(positive), mean(abs(a)), mean(abs(b)))
  both <- settled(if (paired) b - a else c(a, b), rounding)
  if (paired) list(a = 0 * both, b = both) else list(a = both[seq_along(a)], b = both[-seq_along(a)])
}

# The exact rank test on the scale that decides. R has an exact p only without ties; with them there is NA here.
rank_test <- function(a, b, paired) {
  values <- if (paired) b - a else c(a, b)
  tied <- if (paired) any(values == 0) || anyDuplicated(abs(values)) > 0 else anyDuplicated(values) > 0
  if (tied || length(values) < 2) return(NULL)
  tryCatch(suppressWarnings(if (paired) wilcox.test(values, exact = TRUE, conf.int = TRUE)
    else wilcox.test(b, a, exact = TRUE, conf.int = TRUE)), error = function(e) NULL)
}

# The exact p of a mean difference: all choices of signs up to 20 blocks, then Lugannani and Rice's formula.
sums <- function(sizes) {
  found <- 0
  for (size in sizes) found <- c(found - size, found + size)
  found
}
exchange_p <- function(d) {
  n <- length(d)
  sizes <- abs(d)
  total <- abs(sum(d))
  least <- total - 1e-12 * sum(sizes)
  if (least <= 0) return(1)
  if (n <= 20) {
    half <- n %/% 2
    some <- sums(sizes[seq_len(half)])
    others <- sort(sums(sizes[(half + 1):n]))
    below <- findInterval(least - some, others, left.open = TRUE)
    return(min(1, 2 * sum(length(others) - below) / 2^n))
  }
  smallest <- 2^max(1 - n, -1000)
  if (total >= sum(sizes) * (1 - 1e-12)) return(smallest)
  a <- sizes / sqrt(sum(sizes^2))
  at <- total / sqrt(sum(sizes^2))
  tilt <- uniroot(function(u) sum(a * tanh(u * a)) - at, c(0, 1000), tol = 1e-12)$root
  w <- sqrt(2 * (tilt * at - sum(tilt * a + log1p(exp(-2 * tilt * a)) - log(2))))
  if (is.na(w) || w <= 1e-3) return(1)
  v <- tilt * sqrt(sum(a^2 * (1 - tanh(tilt * a)^2)))
  min(1, max(smallest, 2 * (pnorm(-w) + dnorm(w) * (1 / v - 1 / w))))
}

# The chance of a rank statistic that is at least as large, given the ties: of whole numbers, so of twice the ranks.
tail <- function(chances, statistic) min(1, sum(chances[(round(statistic) + 1):length(chances)]))
beyond <- function(away, spread) if (spread > 0) pnorm(-(away - 0.5) / spread) else 1
signed_rank_above <- function(d) {
  signed <- d[d != 0]
  if (!length(signed)) return(1)
  ranks <- rank(abs(signed))
  statistic <- sum(ranks[signed > 0])
  if (length(d) > 50) return(beyond(statistic - sum(ranks) / 2, sqrt(sum(ranks^2)) / 2))
  chances <- 1
  for (each in round(2 * ranks)) chances <- (c(chances, numeric(each)) + c(numeric(each), chances)) / 2
  tail(chances, 2 * statistic)
}
rank_sum_above <- function(a, b) {
  n <- length(a)
  m <- length(b)
  ranks <- rank(c(b, a))
  total <- sum(ranks[seq_len(m)])
  tied <- anyDuplicated(c(a, b)) > 0
  if (max(n, m) > 50 || (tied && n + m > 40))
    return(beyond(total - m * (m + 1) / 2 - n * m / 2, sqrt(n * m / (n + m) * var(ranks))))
  if (!tied) return(pwilcox(total - m * (m + 1) / 2 - 1, m, n, lower.tail = FALSE))
  whole <- round(2 * ranks)
  ways <- matrix(0, m + 1, sum(sort(whole, decreasing = TRUE)[seq_len(m)]) + 1)
  ways[1, 1] <- 1
  for (each in whole) {
    kept <- ncol(ways) - each
    if (kept > 0) ways[-1, each + seq_len(kept)] <- ways[-1, each + seq_len(kept)] + ways[-(m + 1), seq_len(kept)]
  }
  tail(ways[m + 1, ] / choose(n + m, m), 2 * total)
}

# A p that would claim something goes from t's towards the exact ones where those are larger: the further, the more
# choices lie at the level of the family's hardest step.
confirmed <- function(p, a, b, paired, size) {
  alpha <- 1 - confidence
  d <- if (paired) b - a else mean(b) - mean(a)
  choices <- alpha / size * if (paired) 2^min(length(d) - 1, 1000) else choose(length(a) + length(b), length(a)) / 2
  if (is.na(p) || p >= alpha || choices <= 1) return(p)
  up <- if (mean(d) >= 0) 1 else -1
  ranked <- if (paired) signed_rank_above(up * d) else rank_sum_above(up * a, up * b)
  exact <- c(if (paired) exchange_p(d), min(1, 2 * ranked))
  weight <- 1 - 1 / sqrt(choices)
  max(p, p^(1 - weight) * exact^weight)
}

compare <- function(metric, cell, baseline, arm, paired, family, share, held, size, exchanged = FALSE) {
  x <- pick(metric, cell, baseline)
  y <- pick(metric, cell, arm)
  positive <- all(x$value > 0) && all(y$value > 0)
  if (paired) {
    blocks <- intersect(x$block, y$block)
    a <- x$value[match(blocks, x$block)]
    b <- y$value[match(blocks, y$block)]
    ratio <- if (positive) t_test(log(b) - log(a)) else NULL
    centre <- if (positive) mean(log(b) - log(a)) else NA
    difference <- t_test(b - a)
    estimate <- mean(b - a)
  } else {
    a <- x$value
    b <- y$value
    ratio <- if (positive) t_test(log(y$value), log(x$value)) else NULL
    centre <- if (positive) mean(log(y$value)) - mean(log(x$value)) else NA
    difference <- t_test(y$value, x$value)
    estimate <- mean(y$value) - mean(x$value)
  }
  p <- number(if (positive) ratio else difference, function(t) t$p.value)
  scaled <- decided_on(a, b, paired, positive)
  ranks <- rank_test(scaled$a, scaled$b, paired)
  if (exchanged) p <- exchange_p(scaled$b - scaled$a)
  if (held) p <- confirmed(p, scaled$a, scaled$b, paired, size)
  welch <- t_test(y$value, x$value)
  data.frame(
    metric = metric, cell = cell, arm = arm,
    n = if (paired) length(blocks) else min(length(x$value), length(y$value)),
    mean_baseline = mean(x$value), mean_arm = mean(y$value),
    ratio = exp(centre),
    ratio_low = exp(number(ratio, function(t) t$conf.int[1])), ratio_high = exp(number(ratio, function(t) t$conf.int[2])),
    p = p, p_adjusted = NA_real_,
    shift = if (is.null(ranks)) NA else if (positive) exp(unname(ranks$estimate)) else unname(ranks$estimate),
    p_exact = number(ranks, function(t) t$p.value),
    difference = estimate,
    difference_low = number(difference, function(t) t$conf.int[1]),
    difference_high = number(difference, function(t) t$conf.int[2]),
    welch_t = number(welch, function(t) t$statistic), welch_df = number(welch, function(t) t$parameter),
    welch_p = number(welch, function(t) t$p.value),
    welch_low = number(welch, function(t) t$conf.int[1]), welch_high = number(welch, function(t) t$conf.int[2]),
    family = family, share = share, check.names = FALSE
  )
}

results <- do.call(rbind, lapply(comparisons, function(each) do.call(compare, each)))
if (is.null(results)) {
  cat("no comparisons\n")
  quit(status = 0)
}
results$p[is.na(results$p)] <- 1

# The chance that any of several arms that share a baseline has a p value this small: Dunnett's integral.
any_below <- function(p, shares) {
  if (length(shares) == 1 || p >= 1) return(p)
  z <- -qnorm(max(p, 1e-12) / 2)
  bound <- -expm1(length(shares) * log1p(-min(p, 1 - 1e-16)))
  if (p < 1e-12) return(bound)
  f <- function(u) sapply(u, function(one) {
    outside <- pnorm(-(z - sqrt(shares) * one) / sqrt(1 - shares)) + pnorm(-(z + sqrt(shares) * one) / sqrt(1 - shares))
    -expm1(sum(log1p(-pmin(outside, 1 - 1e-16)))) * dnorm(one)
  })
  min(bound, max(p, integrate(f, -10, 10, rel.tol = 1e-9, subdivisions = 1000)$value))
}

# Dunnett within a cell and metric, Holm across them, from the smallest adjusted p value on.
step_down <- function(p, shares, group) {
  left <- rep(TRUE, length(p))
  adjusted <- rep(NA_real_, length(p))
  largest <- 0
  while (any(left)) {
    open <- unique(group[left])
    nearest <- sapply(open, function(g) { own <- which(left & group == g); own[which.min(p[own])] })
    within <- sapply(nearest, function(i) any_below(p[i], shares[left & group == group[i]]))
    largest <- max(largest, min(1, length(open) * min(within)))
    chosen <- nearest[which.min(within)]
    adjusted[chosen] <- largest
    left[chosen] <- FALSE
  }
  adjusted
}

# What has no data is there with p = 1, each in a group of its own: losing data makes no other claim easier.
in_family <- function(p, shares, group) {
  more <- absent[["primary"]]
  step_down(c(p, rep(1, more)), c(shares, numeric(more)), c(group, as.character(seq_len(more))))[seq_along(p)]
}

primary <- which(results$family %in% c("holm", "dunnett"))
alone <- ifelse(results$family == "holm", results$arm, "")
group <- paste(results$metric, results$cell, alone, sep = "\t")
results$p_adjusted[primary] <- in_family(results$p[primary], results$share[primary], group[primary])
screened <- which(results$family == "benjamini_hochberg")
screened_p <- c(results$p[screened], rep(1, absent[["secondary"]]))
results$p_adjusted[screened] <- p.adjust(screened_p, method = "BH")[seq_along(screened)]
results$family <- NULL
results$share <- NULL
if (exists("over_hosts"))
  results <- within(
    cbind(results, do.call(rbind, lapply(comparisons, function(each) do.call(over_hosts, each)))),
    like_p <- pmax(like_p, p))
write.table(format(results, digits = 12, trim = TRUE), sep = "\t", quote = FALSE, row.names = FALSE)
