# What every rank runs, word by word, and where.
gl_work_dir='/home/ada'
set -- \
    './a.out'
