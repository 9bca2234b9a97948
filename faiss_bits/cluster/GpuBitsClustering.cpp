#include "faiss_bits/cluster/GpuBitsClustering.h"

#include <chrono>
#include <cinttypes>
#include <cstdio>

#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/cluster/ClusteringRun.h"
#include "faiss_bits/cluster/RandomRows.h"
#include "faiss_bits/cluster/TrainingVectors.h"
#include "faiss_bits/common/GpuStaging.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu {

using detail::GpuContext;
using detail::TrainingVectors;
using faiss_bits::detail::LaterClusteringOptions;
using faiss_bits::detail::laterClusteringOptions;

namespace {

/// Of the device, for scratch and whoever else is there.
constexpr size_t kSpareBytes = size_t(2) << 30;

/// `later` are those of cp, a value that has not lost them.
void requireOptions(
        const faiss::ClusteringParameters& cp,
        const LaterClusteringOptions& later) {
    const auto atLeast = [](int value, int least, const char* name) {
        FAISS_THROW_IF_NOT_FMT(
                value >= least, "%s = %d is below %d", name, value, least);
    };
    atLeast(cp.niter, 0, "niter");
    atLeast(cp.nredo, 1, "nredo");
    atLeast(cp.max_points_per_centroid, 1, "max_points_per_centroid");
    atLeast(cp.min_points_per_centroid, 0, "min_points_per_centroid");
    const size_t usual = faiss::ClusteringParameters().decode_block_size;
    FAISS_THROW_IF_NOT_FMT(
            cp.decode_block_size == usual,
            "decode_block_size = %zu: there are no codes to decode here; leave "
            "it at %zu",
            cp.decode_block_size,
            usual);
    FAISS_THROW_IF_NOT_FMT(
            later.initMethod == 0,
            "init_method = %d is not supported on the GPU: RANDOM (0) is, and "
            "centroids that are given",
            later.initMethod);
    FAISS_THROW_IF_NOT_MSG(
            !later.superKmeans,
            "use_super_kmeans = true is not supported on the GPU");
}

/// Of this call: option `seed`, or one of the clock where FAISS takes that.
int64_t seedOf(int seed, const LaterClusteringOptions& later) {
    if (seed >= 0 || !later.clockSeeds) {
        return seed;
    }
    return std::chrono::high_resolution_clock::now().time_since_epoch().count();
}

size_t freeBytes() {
    size_t free = 0;
    size_t total = 0;
    BITS_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return free > kSpareBytes ? free - kSpareBytes : 0;
}

/// max_points_per_centroid, and what FAISS says of too few vectors.
void takeSampleOf(
        TrainingVectors& vectors,
        const GpuBitsClustering& clustering,
        const LaterClusteringOptions& later,
        int64_t seed) {
    const idx_t n = vectors.size();
    const idx_t k = clustering.k;
    const idx_t most = k * clustering.max_points_per_centroid;
    const idx_t least = k * clustering.min_points_per_centroid;
    if (n > most) {
        if (clustering.verbose) {
            std::printf(
                    "Sampling a subset of %" PRId64 " / %" PRId64
                    " for training\n",
                    most,
                    n);
        }
        vectors.takeSample(
                later.fasterSubsampling
                        ? faiss_bits::detail::rowsWithRepeats(n, most, seed)
                        : faiss_bits::detail::firstOfPermutation(
                                  n, most, seed));
    } else if (n < least) {
        std::fprintf(
                stderr,
                "WARNING clustering %" PRId64 " points to %" PRId64
                " centroids: please provide at least %" PRId64
                " training points\n",
                n,
                k,
                least);
    }
}

} // namespace

GpuBitsClustering::GpuBitsClustering(
        faiss::gpu::GpuResourcesProvider* provider,
        int d,
        int k,
        const faiss::ClusteringParameters& cp,
        int device)
        : faiss::ClusteringParameters(cp), d(d), k(k), device_(device) {
    detail::requirePositive(d, "d");
    detail::requirePositive(k, "k");
    requireOptions(cp, laterClusteringOptions(cp));
    detail::withFaissErrors([&] {
        const detail::OwnedContext owned(provider, device);
        resources_ = owned.resources;
        device_ = owned.context.device;
    });
}

void GpuBitsClustering::train(idx_t n, const float* x, const float* x_weights) {
    const faiss::ClusteringParameters& options = *this;
    const LaterClusteringOptions later = laterClusteringOptions(options);
    requireOptions(options, later);
    FAISS_THROW_IF_NOT_FMT(
            search_mode <= SearchMode::Plain,
            "search_mode = %d is neither Certified nor Plain",
            int(search_mode));
    FAISS_THROW_IF_NOT_FMT(
            n >= k,
            "n = %lld training vectors are fewer than k = %d clusters",
            (long long)n,
            k);
    detail::requireNotNull(x, "x");
    const auto given = idx_t(centroids.size() / d);
    FAISS_THROW_IF_NOT_FMT(
            centroids.size() % d == 0 && given <= k,
            "centroids has %zu numbers, expected up to k = %d times d = %d",
            centroids.size(),
            k,
            d);

    detail::withFaissErrors([&] {
        faiss::gpu::DeviceScope scope(device_);
        const GpuContext context = detail::contextOf(*resources_, device_);
        const auto start = std::chrono::steady_clock::now();
        const int64_t actualSeed = seedOf(seed, later);
        // Host memory of the caller and of the run is read by copies.
        detail::ScopedWait guard({context.stream});

        TrainingVectors vectors(context, n, d, x, x_weights);
        const size_t bytes =
                most_device_bytes ? most_device_bytes : freeBytes();
        // What is copied as it is, is looked at there: the GPU reads faster.
        const bool isSampled = n > idx_t(k) * max_points_per_centroid;
        if (later.checkInput && isSampled) {
            vectors.requireFinite();
        }
        if (n == k) {
            // As FAISS: nothing to cluster.
            vectors.load(bytes);
            if (later.checkInput) {
                vectors.requireFinite();
            }
            detail::ClusteringRun run(context, *this, vectors, search_mode);
            run.copyVectors();
            centroids = run.centroids();
            iteration_stats.push_back({0, 0, 0, 1, 0});
            if (verbose) {
                std::printf("As many training points as clusters, copied\n");
            }
            return;
        }
        takeSampleOf(vectors, *this, later, actualSeed);
        vectors.load(bytes);
        if (later.checkInput && !isSampled) {
            vectors.requireFinite();
        }
        vectors.requireFiniteWeights();
        if (verbose) {
            std::printf(
                    "Clustering %" PRId64
                    " points in %dD to %d clusters, redo %d times, %d "
                    "iterations\n",
                    vectors.size(),
                    d,
                    k,
                    nredo,
                    niter);
            const std::chrono::duration<double> spent =
                    std::chrono::steady_clock::now() - start;
            std::printf("  Preprocessing in %.2f s\n", spent.count());
        }
        detail::ClusteringRun run(context, *this, vectors, search_mode);
        run.train(actualSeed, later.earlyStop);
        centroids = run.centroids();
        iteration_stats.insert(
                iteration_stats.end(), run.stats().begin(), run.stats().end());
    });
}

} // namespace faiss_bits::gpu
