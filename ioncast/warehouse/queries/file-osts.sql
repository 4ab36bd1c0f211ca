-- title: The OSTs of each file of all logs of a log's job, with their shares of its bytes
-- part: own
select log, file, server, share
from own_jobs join file_osts using (log)
order by log nulls last, file nulls last, server nulls last
