"""Workloads of the native load generator: TPC-C, the OLTP family, scripts, file access, locks; and their scalars."""
