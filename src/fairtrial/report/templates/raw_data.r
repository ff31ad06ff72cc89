
# Everything below is base R and reads nothing but the data above.
pick <- function(metric, cell, arm) {
  for (r in records) if (r$metric == metric && r$cell == cell && r$arm == arm) return(r)
  stop("no data for ", metric, " ", cell, " ", arm)
}

# A test that cannot be computed (too few values, no variance) gives NA and counts as p = 1. Values that have no
# logarithm have no ratio either; their differences are tested instead.
t_test <- function(...) tryCatch(t.test(..., conf.level = confidence), error = function(e) NULL)
number <- function(test, get) {
  found <- if (is.null(test)) NA else unname(get(test))
  if (is.nan(found)) NA else found
}

compare <- function(metric, cell, baseline, arm, paired, family) {
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
    ratio <- if (positive) t_test(log(y$value), log(x$value)) else NULL
    centre <- if (positive) mean(log(y$value)) - mean(log(x$value)) else NA
    difference <- t_test(y$value, x$value)
    estimate <- mean(y$value) - mean(x$value)
  }
  welch <- t_test(y$value, x$value)
  data.frame(
    metric = metric, cell = cell, arm = arm,
    n = if (paired) length(blocks) else min(length(x$value), length(y$value)),
    mean_baseline = mean(x$value), mean_arm = mean(y$value),
    ratio = exp(centre),
    ratio_low = exp(number(ratio, function(t) t$conf.int[1])), ratio_high = exp(number(ratio, function(t) t$conf.int[2])),
    p = number(if (positive) ratio else difference, function(t) t$p.value), p_holm = NA_real_,
    difference = estimate,
    difference_low = number(difference, function(t) t$conf.int[1]),
    difference_high = number(difference, function(t) t$conf.int[2]),
    welch_t = number(welch, function(t) t$statistic), welch_df = number(welch, function(t) t$parameter),
    welch_p = number(welch, function(t) t$p.value),
    welch_low = number(welch, function(t) t$conf.int[1]), welch_high = number(welch, function(t) t$conf.int[2]),
    family = family, check.names = FALSE
  )
}

results <- do.call(rbind, lapply(comparisons, function(each) do.call(compare, each)))
if (is.null(results)) {
  cat("no comparisons\n")
  quit(status = 0)
}
primary <- which(results$family)
results$p[is.na(results$p)] <- 1
results$p_holm[primary] <- p.adjust(results$p[primary], method = "holm")
results$family <- NULL
write.table(format(results, digits = 12, trim = TRUE), sep = "\t", quote = FALSE, row.names = FALSE)
