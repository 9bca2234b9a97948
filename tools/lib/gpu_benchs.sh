# shellcheck shell=bash disable=SC2154
# The benches of run_gpu.sh, which reads this file; tools/pack_gpu.sh puts the
# two into one folder. It takes its names from there: $here, $out, record,
# add_row, not_run, find_python, find_any_python.

# use_bench_args: sets args, the options that all benches know.
use_bench_args() {
    FAISS_BITS_COMMIT=$(cat "$here/commit")
    export FAISS_BITS_COMMIT
    args=()
    if [[ -n ${FAISS_BITS_BENCH_SECONDS:-} ]]; then
        args+=(--max-seconds "$FAISS_BITS_BENCH_SECONDS")
    fi
}

# use_sift: sets sift, the options that name the vectors; none without a file.
use_sift() {
    local file=${FAISS_BITS_BENCH_SIFT:-} source
    source=${FAISS_BITS_DATA:-$here/data}/sift100K.h5
    sift=()
    if [[ -z $file && -e $source ]] && find_python; then
        file=$out/sift.bvecs
        record export_sift "$python" "$here/benchs/export_vectors.py" \
            "$source" "$file"
    fi
    if [[ -s $file ]]; then
        sift=(--sift "$file")
    else
        echo "no vectors: the order sift is left out"
    fi
}

run_select() {
    local args sift
    use_bench_args
    use_sift
    # shellcheck disable=SC2086  # words, as the user wrote them
    record bench_select "$here/benchs/bin/bench_select" \
        --out "$out/select.json" "${args[@]}" "${sift[@]}" \
        ${FAISS_BITS_BENCH_ARGS:-}
    if ! find_any_python; then
        add_row torch_topk "NOT RUN: no Python" 0
        return
    fi
    if "$python" -c 'import torch' 2>/dev/null; then
        record torch_topk "$python" "$here/benchs/torch_topk.py" \
            "$out/select.json" "${sift[@]}"
    else
        add_row torch_topk "NOT RUN: no torch" 0
    fi
    if [[ ! -e $out/select.json ]]; then
        return
    fi
    # Lines that are missed are a finding, not a failure of the run.
    "$python" "$here/benchs/check.py" "$out/select.json" \
        --targets "$here/benchs/select_targets.json" >"$out/targets.log" || true
    grep -v ^ok "$out/targets.log" || true
    rm -f "$out/sift.bvecs"
}

run_select_sweep() {
    local args sift file=$out/select_sweep.json
    use_bench_args
    use_sift
    # shellcheck disable=SC2086  # words, as the user wrote them
    record bench_select_sweep "$here/benchs/bin/bench_select_sweep" \
        --out "$file" "${args[@]}" "${sift[@]}" \
        ${FAISS_BITS_SELECT_SWEEP_ARGS:-}
    tail -n 60 "$out/bench_select_sweep.log" || true
    if ! find_any_python; then
        add_row torch_topk_sweep "NOT RUN: no Python" 0
    elif "$python" -c 'import torch' 2>/dev/null; then
        record torch_topk_sweep "$python" "$here/benchs/torch_topk.py" \
            "$file" "${args[@]}" "${sift[@]}"
    else
        add_row torch_topk_sweep "NOT RUN: no torch" 0
    fi
    rm -f "$out/sift.bvecs"
}

run_flat() {
    local args
    use_bench_args
    # shellcheck disable=SC2086  # words, as the user wrote them
    record bench_flat "$here/benchs/bin/bench_flat" \
        --out "$out/flat.json" "${args[@]}" ${FAISS_BITS_BENCH_ARGS:-}
}

# run_with_torch <name> <script> <arguments...>: of the module's Python.
run_with_torch() {
    local name=$1 script=$2
    shift 2
    if ! find_python; then
        not_run "$name"
    elif ! "$python" -c 'import torch' 2>/dev/null; then
        add_row "$name" "NOT RUN: no torch" 0
    else
        record "$name" "$python" "$here/benchs/$script" "$@"
    fi
}

run_rivals() {
    local args
    use_bench_args
    # shellcheck disable=SC2086  # words, as the user wrote them
    run_with_torch flat_rivals flat_rivals.py "$out/flat.json" "${args[@]}" \
        ${FAISS_BITS_RIVALS_ARGS:-}
}

# Of the rivals, --env in FAISS_BITS_IVF_RIVALS_ARGS says where they are.
run_ivf_rivals() {
    local args
    use_bench_args
    # shellcheck disable=SC2086  # words, as the user wrote them
    run_with_torch ivf_rivals ivf_rivals.py --out "$out/ivf_rivals.json" \
        "${args[@]}" ${FAISS_BITS_IVF_RIVALS_ARGS:-}
}

run_sweep() {
    local args
    use_bench_args
    # shellcheck disable=SC2086  # words, as the user wrote them
    run_with_torch flat_sweep bench_flat_sweep.py \
        --out "$out/flat_sweep.json" "${args[@]}" ${FAISS_BITS_SWEEP_ARGS:-}
    tail -n 40 "$out/flat_sweep.log" || true
}

run_filters() {
    local args
    use_bench_args
    record bench_filters "$here/benchs/bin/bench_filters" \
        --out "$out/filters.json" "${args[@]}"
}

# Flat search has parts on one GPU, the others on all that there are.
run_many() {
    local args job gpus
    use_bench_args
    record bench_many "$here/benchs/bin/bench_many" \
        --out "$out/many.json" "${args[@]}"
    gpus=$(nvidia-smi --query-gpu=name --format=csv,noheader | wc -l)
    if ((gpus > 1)); then
        args+=(--devices "$gpus" --parts "1,$gpus")
    fi
    for job in ivf range kmeans knn_graph; do
        record "bench_many_$job" "$here/benchs/bin/bench_many_$job" \
            --out "$out/many_$job.json" "${args[@]}"
    done
}

run_metrics() {
    local args
    use_bench_args
    # shellcheck disable=SC2086  # words, as the user wrote them
    record bench_metrics "$here/benchs/bin/bench_metrics" \
        --out "$out/metrics.json" "${args[@]}" ${FAISS_BITS_BENCH_ARGS:-}
}

# Uniform and clustered vectors, codes, filters and random cells, each with a
# file of its own.
run_ivf() {
    local args
    use_bench_args
    record bench_ivf "$here/benchs/bin/bench_ivf" \
        --out "$out/ivf.json" "${args[@]}"
    record bench_ivf_clustered "$here/benchs/bin/bench_ivf" --data clustered \
        --out "$out/ivf_clustered.json" "${args[@]}"
    record bench_ivf_codes "$here/benchs/bin/bench_ivf" \
        --indexes ivf_sq8,ivf_pq32,ivf_pq64,ivf_sq4,ivf_fp16 \
        --qs 1,1024,10240 --ks 10,100 --out "$out/ivf_codes.json" "${args[@]}"
    record bench_ivf_filters "$here/benchs/bin/bench_ivf" --nlists 1024 \
        --filters 0.001,0.01,0.1,0.5,0.9,1 --qs 1,128,1024,10240 --ks 10 \
        --out "$out/ivf_filters.json" "${args[@]}"
    record bench_ivf_sweep "$here/benchs/bin/bench_ivf" --sweep 210 \
        --out "$out/ivf_sweep.json" "${args[@]}"
}

run_queues() {
    local args
    use_bench_args
    record bench_queues "$here/benchs/bin/bench_queues" \
        --out "$out/papers.json" "${args[@]}"
}

run_bench() {
    run_select
    run_select_sweep
    run_flat
    run_rivals
    run_sweep
    run_filters
    run_ivf
    run_ivf_rivals
    run_many
    run_metrics
    run_queues
}
