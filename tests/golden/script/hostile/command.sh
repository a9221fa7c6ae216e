# What every rank runs, word by word, and where.
gl_work_dir='/home/ada/a b'"'"'c"d $(id) `id` \ grüße 日本 🚀 # %j'
set -- \
    './a.out' \
    'a b'"'"'c"d $(id) `id` \ grüße 日本 🚀 # %j' \
    ':' \
    '' \
    '-x' \
    'two
lines' \
    '
' \
    '$HOME'
