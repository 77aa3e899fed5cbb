-- Nothing: the number is kept for another change.
SELECT 1;
