// Search, assign and reconstruction of GpuIndexBitsFlat.

#include <algorithm>
#include <limits>
#include <optional>
#include <typeinfo>

#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/flat/FlatStorage.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/flat/VectorKernels.h"
#include "kernels/knn/FlatKnn.h"

namespace faiss_bits::gpu {

using detail::allocTemporary;
using detail::FlatView;
using detail::GpuContext;
using detail::requireNotNull;
using detail::StagedInput;
using detail::StagedOutput;
using detail::withFaissErrors;
using faiss::gpu::DeviceScope;

namespace {

void requireSearchArguments(
        idx_t n,
        idx_t k,
        const faiss::SearchParameters* params) {
    FAISS_THROW_IF_NOT_FMT(n >= 0, "n = %lld is negative", (long long)n);
    FAISS_THROW_IF_NOT_FMT(
            k >= 1 && k <= kMaxK,
            "k = %lld is outside 1..%d",
            (long long)k,
            kMaxK);
    if (!params) {
        return;
    }
    FAISS_THROW_IF_NOT_FMT(
            typeid(*params) == typeid(faiss::SearchParameters),
            "params is a %s: a flat index would have to ignore what it asks "
            "for; only a plain SearchParameters is taken",
            typeid(*params).name());
    FAISS_THROW_IF_NOT_MSG(
            !params->sel,
            "params->sel is set, but filters are not supported yet");
}

} // namespace

void GpuIndexBitsFlat::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    requireSearchArguments(n, k, params);
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    requireNotNull(distances, "distances");
    requireNotNull(labels, "labels");
    searchPaged_(n, x, int(k), distances, labels);
}

void GpuIndexBitsFlat::assign(idx_t n, const float* x, idx_t* labels, idx_t k)
        const {
    requireSearchArguments(n, k, nullptr);
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    requireNotNull(labels, "labels");
    searchPaged_(n, x, int(k), nullptr, labels);
}

void GpuIndexBitsFlat::searchPaged_(
        idx_t n,
        const float* x,
        int k,
        float* distances,
        idx_t* labels) const {
    DeviceScope scope(config_.device);
    const GpuContext context{
            resources_.get(),
            config_.device,
            resources_->getDefaultStream(config_.device)};
    withFaissErrors([&] {
        StagedInput queries(context, "x", x, sizeof(float) * d);
        StagedOutput outDistances(
                context, "distances", distances, sizeof(float) * k);
        StagedOutput outLabels(context, "labels", labels, sizeof(idx_t) * k);

        // A page must also be countable by searchImpl_.
        const idx_t page = detail::rowsPerPage(
                context,
                std::min<idx_t>(n, std::numeric_limits<int>::max()),
                queries.stagedRowBytes() + outDistances.stagedRowBytes() +
                        outLabels.stagedRowBytes(),
                minPagedSize_);
        queries.allocate(page);
        outDistances.allocate(page);
        outLabels.allocate(page);
        for (idx_t first = 0; first < n; first += page) {
            const idx_t rows = std::min(page, n - first);
            searchImpl_(
                    ImplSize(rows),
                    static_cast<const float*>(queries.page(first, rows)),
                    k,
                    static_cast<float*>(outDistances.page(first)),
                    static_cast<idx_t*>(outLabels.page(first)),
                    nullptr);
            outDistances.finish(first, rows);
            outLabels.finish(first, rows);
        }
        if (queries.readsAfterReturn() || outDistances.isOnHost() ||
            outLabels.isOnHost()) {
            detail::waitFor(context.stream);
        }
    });
}

void GpuIndexBitsFlat::searchImpl_(
        ImplSize n,
        const float* x,
        int k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    requireSearchArguments(n, k, params);
    const GpuContext context{
            resources_.get(),
            config_.device,
            resources_->getDefaultStream(config_.device)};
    withFaissErrors([&] {
        const FlatView view = detail::viewOf(*data_);

        FlatKnnProblem problem;
        problem.metric = detail::requireMetric(metric_type);
        problem.dataType = view.dataType;
        problem.numVectors = view.n;
        problem.numQueries = n;
        problem.d = d;
        problem.k = k;
        problem.vectors = view.vectors;
        problem.queries = x;
        problem.vectorNorms =
                problem.metric == Metric::L2 ? view.norms : nullptr;
        problem.outDistances = distances;
        problem.outIds = labels;
        problem.idType = IdType::Int64;
        problem.device = deviceTraits(context.device);

        // Float16 vectors meet float16 queries, as in FAISS.
        faiss::gpu::GpuMemoryReservation halfQueries;
        if (view.dataType == DataType::Float16) {
            halfQueries = allocTemporary(
                    context, size_t(n) * d * sizeOf(DataType::Float16));
            detail::runFloatToHalf(
                    x, halfQueries.get(), idx_t(n) * d, context.stream);
            problem.queries = halfQueries.get();
        }

        const size_t bytes =
                flatKnnWorkspaceBytes(problem, detail::scratchBudget(context));
        auto scratch = allocTemporary(context, bytes);
        runFlatKnn(
                problem,
                Workspace{scratch.get(), bytes},
                resources_->getBlasHandle(context.device),
                context.stream);
    });
}

void GpuIndexBitsFlat::reconstruct(idx_t key, float* out) const {
    FAISS_THROW_IF_NOT_FMT(
            key >= 0 && key < ntotal,
            "key = %lld is outside 0..%lld",
            (long long)key,
            (long long)ntotal - 1);
    reconstruct_n(key, 1, out);
}

void GpuIndexBitsFlat::reconstruct_n(idx_t i0, idx_t n, float* out) const {
    FAISS_THROW_IF_NOT_FMT(n >= 0, "n = %lld is negative", (long long)n);
    if (n == 0) {
        return;
    }
    FAISS_THROW_IF_NOT_FMT(
            i0 >= 0 && i0 < ntotal,
            "i0 = %lld is outside 0..%lld",
            (long long)i0,
            (long long)ntotal - 1);
    FAISS_THROW_IF_NOT_FMT(
            n <= ntotal - i0,
            "n = %lld: there are only %lld vectors from i0 = %lld on",
            (long long)n,
            (long long)(ntotal - i0),
            (long long)i0);
    requireNotNull(out, "out");

    DeviceScope scope(config_.device);
    const GpuContext context{
            resources_.get(),
            config_.device,
            resources_->getDefaultStream(config_.device)};
    withFaissErrors([&] {
        const FlatView view = detail::viewOf(*data_);
        const size_t rowBytes = sizeOf(view.dataType) * d;
        const char* source =
                static_cast<const char*>(view.vectors) + size_t(i0) * rowBytes;
        if (view.dataType == DataType::Float32) {
            // Straight from the storage, wherever `out` is.
            detail::copyOut(context, source, "out", out, size_t(n) * rowBytes);
            return;
        }
        StagedOutput rows(context, "out", out, sizeof(float) * d);
        const idx_t page = detail::rowsPerPage(
                context, n, rows.stagedRowBytes(), minPagedSize_);
        rows.allocate(page);
        for (idx_t first = 0; first < n; first += page) {
            const idx_t count = std::min(page, n - first);
            detail::runHalfToFloat(
                    source + size_t(first) * rowBytes,
                    static_cast<float*>(rows.page(first)),
                    count * d,
                    context.stream);
            rows.finish(first, count);
        }
        if (rows.isOnHost()) {
            detail::waitFor(context.stream);
        }
    });
}

void GpuIndexBitsFlat::reconstruct_batch(idx_t n, const idx_t* keys, float* out)
        const {
    gather_(n, nullptr, keys, out);
}

void GpuIndexBitsFlat::compute_residual(
        const float* x,
        float* residual,
        idx_t key) const {
    compute_residual_n(1, x, residual, &key);
}

void GpuIndexBitsFlat::compute_residual_n(
        idx_t n,
        const float* xs,
        float* residuals,
        const idx_t* keys) const {
    if (n > 0) {
        requireNotNull(xs, "xs");
    }
    gather_(n, xs, keys, residuals);
}

void GpuIndexBitsFlat::gather_(
        idx_t n,
        const float* xs,
        const idx_t* keys,
        float* out) const {
    FAISS_THROW_IF_NOT_FMT(n >= 0, "n = %lld is negative", (long long)n);
    if (n == 0) {
        return;
    }
    requireNotNull(keys, "keys");
    requireNotNull(out, xs ? "residuals" : "out");

    DeviceScope scope(config_.device);
    const GpuContext context{
            resources_.get(),
            config_.device,
            resources_->getDefaultStream(config_.device)};
    withFaissErrors([&] {
        const FlatView view = detail::viewOf(*data_);
        const size_t rowBytes = sizeof(float) * d;
        StagedInput keyRows(context, "keys", keys, sizeof(idx_t));
        if (keyRows.stagedRowBytes()) {
            for (idx_t i = 0; i < n; ++i) {
                FAISS_THROW_IF_NOT_FMT(
                        keys[i] >= -1 && keys[i] < ntotal,
                        "keys[%lld] = %lld is outside -1..%lld",
                        (long long)i,
                        (long long)keys[i],
                        (long long)ntotal - 1);
            }
        }
        std::optional<StagedInput> minuends;
        if (xs) {
            minuends.emplace(context, "xs", xs, rowBytes);
        }
        StagedOutput rows(context, xs ? "residuals" : "out", out, rowBytes);
        const idx_t page = detail::rowsPerPage(
                context,
                n,
                keyRows.stagedRowBytes() +
                        (xs ? minuends->stagedRowBytes() : 0) +
                        rows.stagedRowBytes(),
                minPagedSize_);
        keyRows.allocate(page);
        if (xs) {
            minuends->allocate(page);
        }
        rows.allocate(page);

        detail::GatherProblem problem;
        problem.vectors = view.vectors;
        problem.dataType = view.dataType;
        problem.n = view.n;
        problem.d = d;
        problem.missing = xs ? std::numeric_limits<float>::quiet_NaN() : 0;
        for (idx_t first = 0; first < n; first += page) {
            problem.numIds = std::min(page, n - first);
            problem.ids = static_cast<const idx_t*>(
                    keyRows.page(first, problem.numIds));
            if (xs) {
                problem.minuend = static_cast<const float*>(
                        minuends->page(first, problem.numIds));
            }
            problem.out = static_cast<float*>(rows.page(first));
            detail::runGather(problem, context.stream);
            rows.finish(first, problem.numIds);
        }
        if (rows.isOnHost() || keyRows.readsAfterReturn() ||
            (xs && minuends->readsAfterReturn())) {
            detail::waitFor(context.stream);
        }
    });
}

} // namespace faiss_bits::gpu
