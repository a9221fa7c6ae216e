# The container that every rank starts in. Of an image the names in gl_names keep the job's value.
gl_named='image.sqsh'
gl_runtime='apptainer'
gl_file='/BASE/image.sqsh'
gl_pyxis='/BASE/image.sqsh'
gl_pull='/BASE/image.sqsh'
gl_mounts='/scratch:/scratch,/data:/in:ro'
gl_inside='/BASE'
gl_names='NCCL_DEBUG HF_TOKEN CUDA_HOME MASTER_ADDR MASTER_PORT GLAUNCH_LOG_DIR'
gl_options='--extra=1'
gl_place='/BASE'
gl_import_s=1800
shown_folders() { printf '%s' '/BASE:/BASE,/BASE/job:/BASE/job,'"$GLAUNCH_LOG_DIR:$GLAUNCH_LOG_DIR${gl_mounts:+,$gl_mounts}"; }
