"""Comparisons whose blocks ran on several hosts: these hosts, hosts like these, and the next one."""
