-- Nothing changes with this version: its number was taken for another one.
SELECT 1;
