CREATE TABLE words(id INTEGER PRIMARY KEY, word TEXT, n INTEGER, x REAL);
WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 5000)
INSERT INTO words SELECT i, printf('word%04d', i * 7919 % 997), i * 31 % 1009, i / 7.0 FROM c;
CREATE INDEX by_word ON words(word, n); CREATE TABLE log(t TEXT);
CREATE TRIGGER told AFTER UPDATE ON words WHEN new.n > 1000 BEGIN INSERT INTO log VALUES (new.word || ':' || old.n); END;
UPDATE words SET n = n + 3 WHERE id % 3 = 0; DELETE FROM words WHERE word GLOB 'word00[3-5]*';
SELECT word, count(*), sum(n), round(avg(x), 4), min(x), group_concat(id) FROM words GROUP BY word HAVING count(*) > 5 ORDER BY 3 DESC LIMIT 20;
SELECT a.id, b.id FROM words a JOIN words b ON a.n = b.id LEFT JOIN log ON t LIKE a.word || '%' WHERE a.id < 60 ORDER BY a.id;
SELECT id, sum(n) OVER (PARTITION BY word ORDER BY id ROWS 2 PRECEDING), rank() OVER (ORDER BY n) FROM words WHERE id < 200;
SELECT count(*), total(length(t)), hex(substr(t, 1, 4)), lower(upper(t)) FROM log; SELECT json_extract('{"a":[1,{"b":2}]}', '$.a[1].b'), date(0, 'unixepoch'), replace('abc', 'b', 'x'), abs(-3.5), 7 % 3, 1e308 * 10, typeof(null);
EXPLAIN QUERY PLAN SELECT * FROM words WHERE word = 'word0001' AND n > 5; PRAGMA integrity_check; VACUUM;
BEGIN; INSERT INTO words VALUES (99999, 'x', 1, 2); ROLLBACK; SELECT max(id) FROM words; SELECT * FROM nowhere;
