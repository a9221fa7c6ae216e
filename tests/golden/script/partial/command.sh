# What every rank runs, word by word, and where.
gl_work_dir='/'
set -- \
    './a.out'
