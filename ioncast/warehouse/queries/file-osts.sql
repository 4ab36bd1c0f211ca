-- title: The OSTs of each file of a log, with their shares of its bytes
-- log: text; the log, by its SHA-256
select file, server, share
from file_osts
where log = :log
order by file nulls last, server nulls last
