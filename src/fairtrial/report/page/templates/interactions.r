
# Whether an arm's effect differs between conditions: contrasts of the cells' log ratios, other factors' cells averaged
# alike. `tests` lists what is tested: factors, and the cells in which all their levels are there. Each cell has noise of
# its own (Johansen's test, which of two levels is Welch's t, with half a degree of freedom less of each cell); p_pooled is
# the classical F test, as `lm(log(value) ~ block:cell + arm * factors)` gives it. With blocks in step (another factor
# than the arm is compared) rounds are vectors: Hotelling's test. p values belong to a design with one look.
log_ratios <- function(test) lapply(test$cells, function(cell) {
  x <- pick(test$metric, cell, test$baseline)
  y <- pick(test$metric, cell, test$arm)
  if (!test$paired) return(list(log(x$value), log(y$value)))
  blocks <- intersect(x$block, y$block)
  list(setNames(log(y$value[match(blocks, y$block)]) - log(x$value[match(blocks, x$block)]), blocks))
})
group_means <- function(test) {
  groups <- unlist(log_ratios(test), recursive = FALSE)
  if (!test$in_step) {
    n <- lengths(groups)
    s2 <- sapply(groups, var)
    common <- sum(s2 * (n - 1)) / sum(n - 1)
    held <- pmax(s2, 0.05^2 * common)  # a few values may agree by chance
    return(list(mean = sapply(groups, mean), v = diag(held / n), n = n, common = common))
  }
  rounds <- Reduce(intersect, lapply(groups, names))
  values <- sapply(groups, function(each) each[rounds])
  list(mean = colMeans(values), v = cov(values) / length(rounds), n = rep(length(rounds), length(groups)))
}
averaged <- function(test) {  # a row per combination of the factors' levels, the last factor's changing fastest
  combinations <- rev(expand.grid(rev(test$levels), stringsAsFactors = FALSE))
  rows <- apply(combinations, 1, function(levels) {
    inside <- sapply(test$cells, function(cell) all(conditions[[cell]][names(test$levels)] == levels))
    kronecker(inside / sum(inside), if (test$paired) 1 else c(-1, 1))
  })
  t(rows)
}
against_first <- function(count) cbind(-1, diag(count - 1))
johansen <- function(at, weights) {
  q <- nrow(weights)
  inverse <- solve(weights %*% at$v %*% t(weights))
  estimates <- weights %*% at$mean
  statistic <- drop(t(estimates) %*% inverse %*% estimates)
  n <- at$n[1]
  if (at$in_step) return(list(f = statistic * (n - q) / (q * (n - 1)), q = q, df = n - q))
  hat <- diag(at$v %*% t(weights) %*% inverse %*% weights)
  a <- sum(hat^2 / (at$n - 1.5))
  list(f = statistic / (q + 2 * a - 6 * a / (q + 2)), q = q, df = q * (q + 2) / (3 * a))
}
interaction_test <- function(test) {
  at <- c(group_means(test), in_step = test$in_step)
  weights <- Reduce(kronecker, lapply(lengths(test$levels), against_first)) %*% averaged(test)
  found <- johansen(at, weights)
  estimates <- weights %*% at$mean
  classical <- drop(t(estimates) %*% solve(weights %*% diag(1 / at$n) %*% t(weights), estimates)) / found$q
  data.frame(
    metric = test$metric, arm = test$arm, factors = paste(names(test$levels), collapse = " x "),
    cells = length(test$cells), f = found$f, df_between = found$q, df_within = found$df,
    p = pf(found$f, found$q, found$df, lower.tail = FALSE),
    p_pooled = if (test$in_step) NA else pf(classical / at$common, found$q, sum(at$n - 1), lower.tail = FALSE))
}
level_pairs <- function(test) if (length(test$levels) == 1) {
  at <- c(group_means(test), in_step = test$in_step)
  means <- averaged(test)
  levels <- test$levels[[1]]
  found <- combn(length(levels), 2)
  do.call(rbind, apply(found, 2, function(pair) {
    weights <- means[pair[2], ] - means[pair[1], ]
    error <- sqrt(drop(weights %*% at$v %*% weights))
    df <- johansen(at, t(weights))$df
    centre <- sum(weights * at$mean)
    away <- qt(1 - (1 - confidence) / ncol(found) / 2, df) * error
    data.frame(
      metric = test$metric, arm = test$arm, factor = names(test$levels), first = levels[pair[1]],
      second = levels[pair[2]], ratio_of_ratios = exp(centre), low = exp(centre - away), high = exp(centre + away),
      p = 2 * pt(-abs(centre / error), df))
  }, simplify = FALSE))
}
contrasted <- do.call(rbind, lapply(tests, interaction_test))
contrasted$p_adjusted <- p.adjust(c(contrasted$p, rep(1, untested)), method = "holm")[seq_along(contrasted$p)]
cat("\n")
write.table(format(contrasted, digits = 12, trim = TRUE), sep = "\t", quote = FALSE, row.names = FALSE)
between_levels <- do.call(rbind, lapply(tests, level_pairs))
if (!is.null(between_levels)) {
  cat("\n")
  write.table(format(between_levels, digits = 12, trim = TRUE), sep = "\t", quote = FALSE, row.names = FALSE)
}
