
# Curves over a numeric factor: parameters by nls (law of scalability) or lm (straight line), intervals by what each
# block adds to them, linearised around the fit. Base R only; sigma and kappa are printed without their bound of 0.
law <- deriv(~ l + log(n) - log(1 + s * (n - 1) + k * n * (n - 1)), c("l", "s", "k"), function(l, s, k, n) NULL)
fits <- list(
  usl = function(n, y) {
    x <- exp(y)
    rough <- coef(lm(I(n / x) ~ I(n - 1) + I(n * (n - 1)), weights = (x / n)^2))
    if (rough[[1]] <= 0) stop("the best fit has an infinite rate of one user")
    start <- list(l = -log(rough[[1]]), s = rough[[2]] / rough[[1]], k = rough[[3]] / rough[[1]])
    at_the_end <- nls.control(tol = 1e-7, maxiter = 500, minFactor = 1e-10, warnOnly = TRUE)  # of what doubles can tell
    fit <- suppressWarnings(nls(y ~ law(l, s, k, n), start = start, control = at_the_end))
    if (deviance(fit) > 1e-12 && !isTRUE(fit$convInfo$finTol < 1e-3)) stop("steps end nowhere")
    theta <- coef(fit)
    slopes <- function(at) attr(law(theta[["l"]], theta[["s"]], theta[["k"]], at), "gradient")
    list(names = c("lambda", "sigma", "kappa"), rates = c(TRUE, FALSE, FALSE), theta = theta, slopes = slopes,
      at = function(at) as.vector(law(theta[["l"]], theta[["s"]], theta[["k"]], at)))
  },
  linear = function(n, y) {
    slopes <- function(at) cbind(1, log2(at / min(n)))
    theta <- coef(lm(y ~ log2(n / min(n))))
    list(names = c("at_first", "per_doubling"), rates = c(TRUE, TRUE), theta = theta, slopes = slopes,
      at = function(at) as.vector(slopes(at) %*% theta))
  }
)
logs_of <- function(metric, cells, arm, shared) do.call(cbind, Map(function(cell, blocks) {
  own <- pick(metric, cell, arm)
  log(own$value[match(blocks, own$block)])
}, cells, shared))
# Half the width of intervals of sums with these weights, from what each block adds; NA where that is only rounding.
half <- function(each, rounding) {
  error <- apply(each, 2, sd) / sqrt(nrow(each))
  qt((1 + confidence) / 2, nrow(each) - 1) * ifelse(error > rounding, error, NA)
}

# Fieller's limits of the peak: where the slope 1 - sigma - kappa N^2 may be 0.
peak_limits <- function(gain, kappa, covariance, reach) {
  known <- kappa^2 - reach^2 * covariance[2, 2]
  middle <- gain * kappa + reach^2 * covariance[1, 2]
  rest <- gain^2 - reach^2 * covariance[1, 1]
  ends <- sort((middle + c(-1, 1) * sqrt(max(0, middle^2 - known * rest))) / known)
  if (known > 0 && kappa > 0) return(c(if (ends[1] > 0) sqrt(ends[1]) else NA, sqrt(max(0, ends[2]))))
  c(if (rest > 0 && gain > 0 && known <= 0) sqrt(ends[2]) else NA, NA)
}

curve_rows <- function(metric, model, values, cells, arms, label) {
  blocks_of <- function(cell) sort(Reduce(intersect, lapply(arms, function(arm) pick(metric, cell, arm)$block)))
  own <- lapply(cells, blocks_of)
  everywhere <- Reduce(intersect, own)
  shared <- lapply(own, function(blocks) c(everywhere, setdiff(blocks, everywhere)))
  shared <- lapply(shared, head, min(lengths(shared)))
  logs <- lapply(arms, function(arm) logs_of(metric, cells, arm, shared))
  rounding <- function(weights) 10 * .Machine$double.eps * max(1, mean(abs(sapply(logs, colMeans)))) *
    sqrt(rowSums(weights^2))
  out <- function(arm, what, estimate, low, high, p = NA) data.frame(
    metric = metric, cell = label, arm = arm, what = what, estimate = estimate, low = low, high = high, p = p)
  made <- tryCatch(lapply(logs, function(y) {
    fit <- fits[[model]](values, colMeans(y))
    slopes <- fit$slopes(values)
    fit$moves <- solve(crossprod(slopes), t(slopes))
    fit$deviations <- sweep(y, 2, colMeans(y))
    fit
  }), error = function(e) NULL)
  if (is.null(made)) return(out(arms, "no fit", NA, NA, NA))
  rows <- list()
  for (i in seq_along(arms)) {
    fit <- made[[i]]
    away <- half(fit$deviations %*% t(fit$moves), rounding(fit$moves))
    shown <- function(x) ifelse(fit$rates, exp(x), x)
    rows[[length(rows) + 1]] <-
      out(arms[i], fit$names, shown(fit$theta), shown(fit$theta - away), shown(fit$theta + away))
    residuals <- colMeans(logs[[i]]) - fit$at(values)
    across <- t(qr.Q(qr(fit$slopes(values)), complete = TRUE)[, -seq_along(fit$theta), drop = FALSE])
    if (nrow(across) && !all(is.na(half(fit$deviations %*% t(across), rounding(across))))) {
      errors <- cov(fit$deviations %*% t(across)) / nrow(fit$deviations)
      trace <- sum(diag(errors))
      first <- trace^2 / sum(errors^2)
      f <- sum((across %*% residuals)^2) / trace
      rows[[length(rows) + 1]] <- out(arms[i], "misfit", f, NA, NA,
        pf(f, first, first * (nrow(fit$deviations) - 1), lower.tail = FALSE))
    }
    if (model == "usl") {
      s <- fit$theta[["s"]]
      k <- fit$theta[["k"]]
      parts <- rbind(fit$moves[2, ] + (1 - s) * fit$moves[1, ], fit$moves[3, ] - k * fit$moves[1, ])
      each <- fit$deviations %*% t(parts)
      ends <- if (all(is.na(half(each, rounding(parts))))) c(NA, NA)
        else peak_limits(1 - s, k, cov(each) / nrow(each), qt((1 + confidence) / 2, nrow(each) - 1))
      rows[[length(rows) + 1]] <- out(arms[i], "peak", if (k > 0 && s < 1) sqrt((1 - s) / k) else NA, ends[1], ends[2])
    }
    if (i > 1) {
      change <- fit$theta - made[[1]]$theta
      each <- fit$deviations %*% t(fit$moves) - made[[1]]$deviations %*% t(made[[1]]$moves)
      equal <- rounding(cbind(fit$moves, made[[1]]$moves))
      away <- half(each, equal)
      df <- nrow(each) - 1
      p <- 2 * pt(-abs(change * qt((1 + confidence) / 2, df) / away), df)
      rows[[length(rows) + 1]] <- out(arms[i], paste("change of", fit$names), shown(change), shown(change - away),
        shown(change + away), sapply(seq_along(change), function(j)
          confirmed(p[j], 0 * each[, j], settled(change[j] + each[, j], equal[j]), TRUE, curve_family)))
    }
  }
  do.call(rbind, rows)
}
cat("\n")
write.table(format(do.call(rbind, lapply(curves, function(each) do.call(curve_rows, each))), digits = 12, trim = TRUE),
  sep = "\t", quote = FALSE, row.names = FALSE)
