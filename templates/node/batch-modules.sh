# batch-modules.sh: a part of batch.sh, which reads it: find_modules, load_modules.
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # names that job.sbatch and batch.sh set or read; what changes in a subshell is meant for it alone

# The shell function `module`, where a centre has one: functions are not inherited, so a script reads what defines it, as a login shell does.
find_modules() {
    ! command -v module >/dev/null || return 0
    for gl_init in ${MODULESHOME:+"$MODULESHOME/init/sh"} ${LMOD_PKG:+"$LMOD_PKG/init/sh"} /etc/profile.d/modules.sh /etc/profile.d/lmod.sh \
        /etc/profile.d/z00_lmod.sh /usr/share/lmod/lmod/init/sh /usr/share/modules/init/sh /usr/share/Modules/init/sh; do
        # Tried in a shell of its own: an error in a file that is read ends the shell
        # shellcheck source=/dev/null
        if [ -r "$gl_init" ] && (set +u && . "$gl_init" && command -v module) >/dev/null 2>&1; then
            set +u
            # shellcheck source=/dev/null
            . "$gl_init"
            set -u
            return 0
        fi
    done
    return 1
}

load_modules() { # NAME…
    find_modules || stop "no modules on ${SLURMD_NODENAME:-this host} (neither Lmod nor environment-modules is found): $* cannot be loaded"
    for gl_module in "$@"; do
        gl_before=${LOADEDMODULES-}
        set +u
        module load "$gl_module" >"$gl_attempt/module.said" 2>&1
        gl_result=$?
        set -u
        # Old ones report no failure: then nothing new is loaded
        case :${LOADEDMODULES-}: in
        *":$gl_module:"* | *":$gl_module/"*) ;;
        *) [ "${LOADEDMODULES-}" != "$gl_before" ] || gl_result=1 ;;
        esac
        if [ "$gl_result" -ne 0 ]; then
            gl_said=$(tr -s '[:space:]' ' ' <"$gl_attempt/module.said" | head -c 300)
            stop "module $gl_module does not load on ${SLURMD_NODENAME:-this host}; no rank was started: $gl_said"
        fi
        cat "$gl_attempt/module.said" >&2
    done
    rm -f "$gl_attempt/module.said"
}
