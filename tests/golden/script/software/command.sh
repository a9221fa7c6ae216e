# What every rank runs, word by word, and where.
gl_work_dir='/home/ada'
set -- \
    '/usr/bin/python3' \
    '/home/ada/train.py' \
    '--lr' \
    '1e-3'
