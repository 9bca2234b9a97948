// Search, assign and reconstruction of GpuIndexBitsFlat.

#include <limits>

#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/common/PagedCall.h"
#include "faiss_bits/flat/FlatChecks.h"
#include "faiss_bits/flat/FlatLastPlan.h"
#include "faiss_bits/flat/FlatStorage.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/flat/GpuSearchCounters.h"
#include "faiss_bits/flat/SearchFilter.h"
#include "faiss_bits/flat/SearchReport.h"
#include "faiss_bits/flat/VectorFacts.h"
#include "faiss_bits/flat/VectorKernels.h"
#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/FlatKnnPlan.h"

namespace faiss_bits::gpu {

using detail::allocTemporary;
using detail::FlatView;
using detail::GpuContext;
using detail::Page;
using detail::PagedCall;
using detail::PageLimits;
using detail::PagePlan;
using detail::requireNotNull;
using detail::SearchFilter;
using detail::withFaissErrors;
using faiss::gpu::DeviceScope;

/// Of checked arguments; distances may be null.
struct GpuIndexBitsFlat::KnnSearch_ {
    const GpuIndexBitsFlat& index;
    const GpuContext& context;
    const SearchFilter& filter;
    idx_t n; // of the batch
    int k;

    /// Of queries and results on the host or on our device.
    void run(const float* x, float* distances, idx_t* labels) const {
        PagedCall call(context);
        const int queries = call.input("x", x, sizeof(float) * index.d);
        const int outDistances =
                call.output("distances", distances, sizeof(float) * k);
        const int outLabels = call.output("labels", labels, sizeof(idx_t) * k);

        call.run(index.pageLimits_(context, n, k), [&](const Page& page) {
            runPage(page.first == 0 ? &call.plan() : nullptr,
                    page.first,
                    page.rows,
                    page.as<const float>(queries),
                    page.as<float>(outDistances),
                    page.as<idx_t>(outLabels));
        });
    }

    /// Of some queries on our device, from number `first` on. How a batch is
    /// cut changes no bit of the results. `pages` is given for the first page
    /// alone, whose plan goes to the log.
    void runPage(
            const PagePlan* pages,
            idx_t first,
            idx_t queries,
            const float* x,
            float* distances,
            idx_t* labels) const {
        withFaissErrors([&] {
            FlatKnnProblem problem = index.problemOf_(n, queries, k);
            problem.numRepeated = index.counters_->repeated();
            problem.numRescored = index.counters_->rescored();
            problem.outDistances = distances;
            problem.outIds = labels;
            filter.apply(problem);
            filter.applyLimits(problem, first);
            detail::ImageUse image = detail::ImageUse::None;
            const auto rounded = index.makeReady_(context, x, problem, &image);

            const FlatKnnPlan plan = detail::planOrLastPlan(
                    problem, detail::scratchBudget(context));
            if (pages) {
                detail::logSearch(
                        "GpuIndexBitsFlat",
                        plan,
                        problem,
                        *pages,
                        n,
                        image,
                        context.device);
            }
            auto scratch = allocTemporary(context, plan.bytes);
            runFlatKnn(
                    plan,
                    problem,
                    Workspace{scratch.get(), plan.bytes},
                    context.resources->getBlasHandle(context.device),
                    context.stream);
            if (plan.parts && plan.certified) {
                index.counters_->add(
                        queries * plan.parts->parts,
                        queries * plan.parts->places);
            } else if (plan.certified) {
                // Else the kernels count.
                index.counters_->add(
                        queries, plan.method ? queries * plan.places : 0);
            }
        });
    }

    /// Of an index and parameters, which may be null.
    static void runOn(
            const GpuIndexBitsFlat& index,
            idx_t n,
            const float* x,
            int k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params) {
        DeviceScope scope(index.config_.device);
        const GpuContext context = index.contextOf_(params);
        withFaissErrors([&] {
            const SearchFilter filter(context, params, index.ntotal, n);
            KnnSearch_{index, context, filter, n, k}.run(x, distances, labels);
        });
    }
};

void GpuIndexBitsFlat::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    detail::requireFlatSearch(n, k, params);
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    requireNotNull(distances, "distances");
    requireNotNull(labels, "labels");
    KnnSearch_::runOn(*this, n, x, int(k), distances, labels, params);
}

void GpuIndexBitsFlat::assign(idx_t n, const float* x, idx_t* labels, idx_t k)
        const {
    detail::requireFlatSearch(n, k, nullptr);
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    requireNotNull(labels, "labels");
    KnnSearch_::runOn(*this, n, x, int(k), nullptr, labels, nullptr);
}

void GpuIndexBitsFlat::search_and_reconstruct(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        float* recons,
        const faiss::SearchParameters* params) const {
    if (n > 0) {
        requireNotNull(recons, "recons");
    }
    search(n, x, k, distances, labels, params);
    // FAISS's goes to the index's own resources.
    gather_(contextOf_(params), n * k, nullptr, labels, recons);
}

void GpuIndexBitsFlat::searchImpl_(
        ImplSize n,
        const float* x,
        int k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    detail::requireFlatSearch(n, k, params);
    const GpuContext context = contextOf_(params);
    withFaissErrors([&] {
        const SearchFilter filter(context, params, ntotal, n);
        PagePlan pages;
        pages.pages = 1;
        pages.rowsPerPage = n;
        KnnSearch_{*this, context, filter, n, k}.runPage(
                &pages, 0, n, x, distances, labels);
    });
}

detail::TemporaryMemory GpuIndexBitsFlat::makeReady_(
        const GpuContext& context,
        const float* x,
        FlatKnnProblem& problem,
        detail::ImageUse* image) const {
    // GpuIndexFlat's own copyFrom changes the vectors and says nothing, but
    // leaves other norms than ours.
    const bool areOurs = problem.greatestNorm;
    facts_->awaitChanges(context, areOurs || problem.numVectors == 0);
    if (areOurs) {
        *image = facts_->giveTo(problem, context);
    } else if (facts_->isOwn(context)) {
        facts_->forget();
    }
    if (!facts_->isOwn(context)) {
        counters_->useOtherStreams();
    }

    // Vectors of 16 bits meet queries of 16 bits, as in FAISS; canonical
    // distances are those of the queries as they came.
    problem.queries = x;
    detail::TemporaryMemory rounded;
    if (problem.dataType != DataType::Float32) {
        const idx_t components = problem.numQueries * d;
        rounded = allocTemporary(
                context, size_t(components) * sizeOf(problem.dataType));
        detail::runFromFloat(
                problem.dataType, x, rounded.get(), components, context.stream);
        problem.queries = rounded.get();
        problem.exactQueries = problem.mode != SearchMode::Plain ? x : nullptr;
    }
    return rounded;
}

void GpuIndexBitsFlat::reconstruct(idx_t key, float* out) const {
    faiss_bits::detail::requireKey(key, ntotal);
    reconstruct_n(key, 1, out);
}

void GpuIndexBitsFlat::reconstruct_n(idx_t i0, idx_t n, float* out) const {
    faiss_bits::detail::requireRun(i0, n, ntotal);
    if (n == 0) {
        return;
    }
    requireNotNull(out, "out");

    DeviceScope scope(config_.device);
    const GpuContext context = detail::contextOf(*resources_, config_.device);
    withFaissErrors([&] {
        const FlatView view = detail::viewOf(*data_, storageType_());
        const size_t rowBytes = sizeOf(view.dataType) * d;
        const char* source =
                static_cast<const char*>(view.vectors) + size_t(i0) * rowBytes;
        if (view.dataType == DataType::Float32) {
            // Straight from the storage, wherever `out` is.
            detail::copyOut(context, source, "out", out, size_t(n) * rowBytes);
            return;
        }
        PagedCall call(context);
        const int rows = call.output("out", out, sizeof(float) * d);
        PageLimits limits;
        limits.rows = n;
        limits.pageBytes = minPagedSize_;
        call.run(limits, [&](const Page& page) {
            detail::runToFloat(
                    view.dataType,
                    source + size_t(page.first) * rowBytes,
                    page.as<float>(rows),
                    page.rows * d,
                    context.stream);
        });
    });
}

void GpuIndexBitsFlat::reconstruct_batch(idx_t n, const idx_t* keys, float* out)
        const {
    gather_(contextOf_(nullptr), n, nullptr, keys, out);
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
    gather_(contextOf_(nullptr), n, xs, keys, residuals);
}

void GpuIndexBitsFlat::gather_(
        const GpuContext& context,
        idx_t n,
        const float* xs,
        const idx_t* keys,
        float* out) const {
    detail::requireCount(n, "n");
    if (n == 0) {
        return;
    }
    requireNotNull(keys, "keys");
    requireNotNull(out, xs ? "residuals" : "out");

    DeviceScope scope(config_.device);
    withFaissErrors([&] {
        const FlatView view = detail::viewOf(*data_, storageType_());
        const size_t rowBytes = sizeof(float) * d;
        PagedCall call(context);
        const int keyRows = call.input("keys", keys, sizeof(idx_t));
        if (call.isOnHost(keyRows)) {
            for (idx_t i = 0; i < n; ++i) {
                FAISS_THROW_IF_NOT_FMT(
                        keys[i] >= -1 && keys[i] < ntotal,
                        "keys[%lld] = %lld is outside -1..%lld",
                        (long long)i,
                        (long long)keys[i],
                        (long long)ntotal - 1);
            }
        }
        const int minuends = xs ? call.input("xs", xs, rowBytes) : -1;
        const int rows = call.output(xs ? "residuals" : "out", out, rowBytes);
        PageLimits limits;
        limits.rows = n;
        limits.pageBytes = minPagedSize_;

        detail::GatherProblem problem;
        problem.vectors = view.vectors;
        problem.dataType = view.dataType;
        problem.n = view.n;
        problem.d = d;
        problem.missing = xs ? std::numeric_limits<float>::quiet_NaN() : 0;
        call.run(limits, [&](const Page& page) {
            problem.numIds = page.rows;
            problem.ids = page.as<const idx_t>(keyRows);
            problem.minuend = xs ? page.as<const float>(minuends) : nullptr;
            problem.out = page.as<float>(rows);
            detail::runGather(problem, context.stream);
        });
    });
}

} // namespace faiss_bits::gpu
