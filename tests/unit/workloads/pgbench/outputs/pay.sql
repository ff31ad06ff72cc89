BEGIN ISOLATION LEVEL SERIALIZABLE;
UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;
\sleep 1 ms
COMMIT;
