#!/bin/bash
# accounting.sh: MariaDB on a socket only (slurm is known by its uid, there is no password), slurmdbd, two accounts, three QOS.
set -euo pipefail
cd /srv
socket=/run/mysqld/mysqld.sock
mkdir -m 755 db /run/mysqld
chown mysql: db /run/mysqld
mariadb-install-db --no-defaults --datadir=/srv/db --user=mysql --auth-root-authentication-method=socket --skip-test-db --innodb-log-file-size=16M
mariadbd --no-defaults --user=mysql --datadir=/srv/db --socket=$socket --pid-file=/run/mysqld/pid --skip-networking \
    --innodb-log-file-size=16M --innodb-flush-log-at-trx-commit=0 --innodb-lock-wait-timeout=900 >log/mariadb 2>&1 &
until mariadb --no-defaults --socket=$socket -e "CREATE DATABASE slurm_acct_db; CREATE USER slurm@localhost IDENTIFIED VIA unix_socket;
    GRANT ALL ON slurm_acct_db.* TO slurm@localhost" 2>/dev/null; do
    kill -0 $! || { tail -n 3 log/mariadb; exit 1; }
    sleep 0.1
done
chown slurm: etc/slurm/slurmdbd.conf
chmod 600 etc/slurm/slurmdbd.conf
slurmdbd
until sacctmgr -i add cluster sandbox 2>/dev/null; do
    ! grep -h 'fatal:' log/slurmdbd || exit 1
    sleep 0.1
done
sacctmgr -i add qos spare PreemptMode=requeue Priority=0     # gives way to normal
sacctmgr -i add qos small MaxTRESPerJob=node=4 Priority=50   # four nodes a job
sacctmgr -i modify qos normal set Preempt=spare Priority=100
sacctmgr -i add account red
sacctmgr -i add account blue
sacctmgr -i add user ada account=red qos=normal,small,spare DefaultQOS=normal
sacctmgr -i add user bob account=blue qos=normal,small,spare DefaultQOS=normal
