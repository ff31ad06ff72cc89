
# Log ratios of blocks adjusted for covariates: the intercept of least squares on the covariates' own differences within
# blocks (log ratios where all values are positive, except of a time). A covariate that a trial lacks is left out, as is one that does not
# vary, which `lm` sees to.
within_blocks <- function(name, cell, baseline, arm, blocks) tryCatch({
  x <- pick(name, cell, baseline)
  y <- pick(name, cell, arm)
  a <- x$value[match(blocks, x$block)]
  b <- y$value[match(blocks, y$block)]
  if (anyNA(c(a, b))) NULL else if (name != "time_since_boot_s" && all(c(a, b) > 0)) log(b) - log(a) else b - a
}, error = function(e) NULL)
adjust <- function(metric, cell, baseline, arm, paired, family, share, held, size, exchanged = FALSE) {
  x <- pick(metric, cell, baseline)
  y <- pick(metric, cell, arm)
  none <- data.frame(metric = metric, cell = cell, arm = arm, adjusted_ratio = NA, adjusted_low = NA,
    adjusted_high = NA, adjusted_df = NA, adjusted_p = NA, width = NA)
  if (!(metric %in% adjusted_metrics) || paste(metric, cell, arm) %in% by_class || !paired || !all(c(x$value, y$value) > 0)) return(none)
  blocks <- intersect(x$block, y$block)
  d <- log(y$value[match(blocks, y$block)]) - log(x$value[match(blocks, x$block)])
  columns <- Filter(Negate(is.null), lapply(covariates, within_blocks, cell, baseline, arm, blocks))
  if (!length(columns) || length(d) < 3) return(none)
  fit <- lm(d ~ do.call(cbind, columns))
  if (fit$df.residual < 3 || fit$rank < 2) return(none)
  interval <- confint(fit, level = confidence)[1, ]
  p <- summary(fit)$coefficients[1, 4]
  remaining <- coef(fit)[[1]] + residuals(fit)
  if (adjusted_decide && held) p <- confirmed(p, 0 * remaining, remaining, TRUE, size)
  data.frame(metric = metric, cell = cell, arm = arm, adjusted_ratio = exp(coef(fit)[[1]]),
    adjusted_low = exp(interval[[1]]), adjusted_high = exp(interval[[2]]), adjusted_df = fit$df.residual,
    adjusted_p = p, width = diff(interval)[[1]] / diff(t.test(d, conf.level = confidence)$conf.int))
}
adjusted <- do.call(rbind, lapply(comparisons, function(each) do.call(adjust, each)))

# Where the study chose them to decide, they take the place of the plain p values in the family.
if (adjusted_decide) {
  p <- ifelse(is.na(adjusted$adjusted_p), results$p, adjusted$adjusted_p)
  shares <- sapply(comparisons, function(each) each$share)
  adjusted$p_in_family <- NA_real_
  adjusted$p_in_family[primary] <- in_family(p[primary], shares[primary], group[primary])
}
cat("\n")
write.table(format(adjusted[adjusted$metric %in% adjusted_metrics, ], digits = 12, trim = TRUE), sep = "\t",
  quote = FALSE, row.names = FALSE)
