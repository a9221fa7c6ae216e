# The container that every rank starts in. Of an image the names in gl_names keep the job's value.
gl_named='nvcr.io/nvidia/pytorch:24.05-py3'
gl_runtime='apptainer'
gl_file=''
gl_pyxis='nvcr.io#nvidia/pytorch:24.05-py3'
gl_pull='docker://nvcr.io/nvidia/pytorch:24.05-py3'
gl_mounts='/scratch:/scratch,/data:/in:ro'
gl_inside='/BASE'
gl_names='NCCL_DEBUG HF_TOKEN CUDA_HOME MASTER_ADDR MASTER_PORT GLAUNCH_LOG_DIR'
gl_options='--extra=1'
gl_place='/BASE'
gl_import_s=1800
shown_folders() { printf '%s' '/BASE:/BASE,/BASE/job:/BASE/job,'"$GLAUNCH_LOG_DIR:$GLAUNCH_LOG_DIR${gl_mounts:+,$gl_mounts}"; }
