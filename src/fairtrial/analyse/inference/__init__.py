"""From two arms' values to an estimate, an interval and a p value; families and verdicts. Pure functions of numbers."""
