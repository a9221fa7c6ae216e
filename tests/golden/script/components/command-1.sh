# What every rank runs of component 1, word by word, and where.
gl_work_dir='/home/ada'
set -- \
    './server' \
    'a b'"'"'c"d $(id) `id` \ grüße 日本 🚀 # %j' \
    ':'
