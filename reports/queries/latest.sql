-- What did the latest complete run measure, row by row?
SELECT * FROM evaluations
WHERE run = (SELECT max(run) FROM evaluations)
ORDER BY position;
