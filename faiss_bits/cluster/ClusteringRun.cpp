#include "faiss_bits/cluster/ClusteringRun.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/cluster/EmptyClusters.h"
#include "faiss_bits/cluster/GpuBitsClustering.h"
#include "faiss_bits/cluster/RandomRows.h"
#include "faiss_bits/cluster/SearchTimer.h"
#include "faiss_bits/common/PagePlan.h"
#include "kernels/cluster/ClusterCentroids.h"
#include "kernels/cluster/ClusterSums.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/common/Workspace.h"
#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/knn/Norms.h"

namespace faiss_bits::gpu::detail {

namespace {

/// FAISS's step of the seed from one redo to the next.
constexpr int64_t kRedoSeed = 15486557;

double now() {
    const std::chrono::duration<double> since =
            std::chrono::steady_clock::now().time_since_epoch();
    return since.count();
}

} // namespace

struct ClusteringRun::Totals {
    double objective = 0;
    std::vector<double> weights;  // [k]
    std::vector<uint64_t> counts; // [k]
};

ClusteringRun::ClusteringRun(
        const GpuContext& context,
        const GpuBitsClustering& clustering,
        const TrainingVectors& vectors,
        SearchMode mode)
        : context_(context),
          clustering_(clustering),
          vectors_(vectors),
          mode_(mode),
          d_(clustering.d),
          k_(clustering.k),
          given_(idx_t(clustering.centroids.size()) / clustering.d),
          frozen_(clustering.frozen_centroids ? given_ : 0),
          timer_(std::make_unique<SearchTimer>(context.stream)) {
    const idx_t rows = std::min(vectors.size(), clusterBlockRows(d_));
    const auto slice = [&](WorkspaceSlices slices) {
        centroids_ = slices.take<float>(size_t(k_) * d_);
        norms_ = slices.take<float>(k_);
        sums_ = slices.take<double>(size_t(k_) * d_);
        weights_ = slices.take<double>(k_);
        counts_ = slices.take<uint64_t>(k_);
        objective_ = slices.take<double>(1);
        distances_ = slices.take<float>(rows);
        labels_ = slices.take<idx_t>(rows);
        return slices.used();
    };
    const size_t bytes = slice(WorkspaceSlices());
    memory_ = allocTemporary(context, bytes);
    slice(WorkspaceSlices(Workspace{memory_.get(), bytes}));
    if (given_ > 0) {
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                centroids_,
                clustering.centroids.data(),
                sizeof(float) * given_ * d_,
                cudaMemcpyDefault,
                context.stream));
    }
}

ClusteringRun::~ClusteringRun() = default;

void ClusteringRun::copyVectors() {
    std::vector<idx_t> rows(k_);
    std::iota(rows.begin(), rows.end(), idx_t(0));
    vectors_.gather(rows, centroids_);
}

std::vector<float> ClusteringRun::centroids() const {
    if (!best_.empty()) {
        return best_;
    }
    std::vector<float> result(size_t(k_) * d_);
    copyOut(context_,
            centroids_,
            "centroids",
            result.data(),
            sizeof(float) * result.size());
    return result;
}

void ClusteringRun::train(int64_t seed, double earlyStop) {
    const int nredo = clustering_.nredo;
    const bool verbose = clustering_.verbose;
    const bool lowerIsBetter = !clustering_.spherical;
    float bestObjective = lowerIsBetter ? HUGE_VALF : -HUGE_VALF;
    std::vector<faiss::ClusteringIterationStats> bestStats;
    if (verbose && given_ > 0) {
        std::printf(
                "  Using %lld centroids provided as input (%sfrozen)\n",
                (long long)given_,
                clustering_.frozen_centroids ? "" : "not ");
    }
    start_ = now();
    for (int redo = 0; redo < nredo; ++redo) {
        if (verbose && nredo > 1) {
            std::printf("Outer iteration %d / %d\n", redo, nredo);
        }
        initialize_(seed, redo);
        for (int i = 0; i < clustering_.niter; ++i) {
            iterate_(i);
            if (i > 0 && isConverged_(earlyStop)) {
                if (verbose) {
                    std::printf(
                            "\n  Converged at iteration %d: objective did not "
                            "change\n",
                            i);
                }
                break;
            }
        }
        if (verbose) {
            std::printf("\n");
        }
        if (nredo == 1) {
            return;
        }
        const float objective = clustering_.niter == 0 ? 0 : stats_.back().obj;
        if (lowerIsBetter ? objective < bestObjective
                          : objective > bestObjective) {
            if (verbose) {
                std::printf("Objective improved: keep new clusters\n");
            }
            best_.clear(); // so that centroids() are those of the device
            best_ = centroids();
            bestStats = stats_;
            bestObjective = objective;
        }
    }
    FAISS_THROW_IF_NOT_FMT(
            !best_.empty(),
            "the objective of none of nredo = %d attempts is a number",
            nredo);
    stats_ = bestStats;
}

void ClusteringRun::initialize_(int64_t seed, int redo) {
    // As FAISS: a permutation of all rows, from place `given` on.
    const std::vector<idx_t> first = faiss_bits::detail::firstOfPermutation(
            vectors_.size(), k_, seed + 1 + redo * kRedoSeed);
    vectors_.gather(
            {first.begin() + given_, first.end()},
            centroids_ + size_t(given_) * d_);
    finishCentroids_();
}

void ClusteringRun::finishCentroids_() {
    runFinishCentroids(
            k_,
            d_,
            clustering_.spherical,
            clustering_.int_centroids,
            centroids_,
            context_.stream);
}

void ClusteringRun::search_(const TrainingBlock& block) {
    FlatKnnProblem problem;
    problem.metric = clustering_.spherical ? Metric::InnerProduct : Metric::L2;
    problem.numVectors = k_;
    problem.batchQueries = vectors_.size();
    problem.d = d_;
    problem.k = 1;
    problem.vectors = centroids_;
    problem.vectorNorms = norms_;
    problem.mode = mode_;
    problem.idType = IdType::Int64;
    problem.device = deviceTraits(context_.device);
    // Two pieces are under way at most, so that an interrupt waits for no more:
    // half a second on a GPU with 8 TFLOP/s. Of even size, as each has a cost.
    const auto mostRows =
            std::max<idx_t>(idx_t(2 * kPageWork / searchWork(k_, d_, 1)), 1024);
    const idx_t pieces = (block.rows + mostRows - 1) / mostRows;
    const idx_t pieceRows = (block.rows + pieces - 1) / pieces;
    for (idx_t first = 0; first < block.rows; first += pieceRows) {
        problem.numQueries = std::min(pieceRows, block.rows - first);
        problem.queries = block.vectors + size_t(first) * d_;
        problem.outDistances = distances_ + first;
        problem.outIds = labels_ + first;
        timer_->waitForLastButOne();
        timer_->begin();
        const FlatKnnPlan plan = planFlatKnn(problem, scratchBudget(context_));
        auto scratch = allocTemporary(context_, plan.bytes);
        runFlatKnn(
                plan,
                problem,
                Workspace{scratch.get(), plan.bytes},
                context_.resources->getBlasHandle(context_.device),
                context_.stream);
        timer_->end();
    }
}

void ClusteringRun::addBlock_(const TrainingBlock& block) {
    search_(block);
    ClusterSumsProblem problem;
    problem.n = block.rows;
    problem.d = d_;
    problem.k = k_;
    problem.vectors = block.vectors;
    problem.labels = labels_;
    problem.labelType = IdType::Int64;
    problem.weights = block.weights;
    problem.distances = distances_;
    problem.accumulate = block.first > 0;
    problem.outSums = sums_;
    problem.outWeights = weights_;
    problem.outCounts = counts_;
    problem.outObjective = objective_;
    const size_t bytes = clusterSumsWorkspaceBytes(problem);
    auto scratch = allocTemporary(context_, bytes);
    runClusterSums(problem, Workspace{scratch.get(), bytes}, context_.stream);
}

void ClusteringRun::iterate_(int iteration) {
    runSquaredNorms(
            centroids_,
            DataType::Float32,
            true,
            k_,
            d_,
            norms_,
            context_.stream);
    vectors_.forBlocks([&](const TrainingBlock& block) { addBlock_(block); });
    runClusterMeans(
            sums_, weights_, frozen_, k_, d_, centroids_, context_.stream);
    const Totals totals = totals_();
    searchTime_ += timer_->takeSeconds();
    const int numSplits = splitEmpty_(totals);
    finishCentroids_();

    faiss::ClusteringIterationStats stats;
    stats.obj = float(totals.objective);
    stats.time = now() - start_;
    stats.time_search = searchTime_;
    stats.imbalance_factor = faiss_bits::detail::imbalanceFactor(totals.counts);
    stats.nsplit = numSplits;
    stats_.push_back(stats);
    if (clustering_.verbose) {
        std::printf(
                "  Iteration %d (%.2f s, search %.2f s): objective=%g "
                "imbalance=%.3f nsplit=%d       \r",
                iteration,
                stats.time,
                stats.time_search,
                stats.obj,
                stats.imbalance_factor,
                numSplits);
        std::fflush(stdout);
    }
}

ClusteringRun::Totals ClusteringRun::totals_() const {
    waitInterruptibly([&] { return isIdle(context_.stream); });
    Totals totals;
    totals.weights.resize(k_);
    totals.counts.resize(k_);
    const auto fetch = [&](void* to, const void* from, size_t bytes) {
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                to, from, bytes, cudaMemcpyDefault, context_.stream));
    };
    fetch(totals.weights.data(), weights_, sizeof(double) * k_);
    fetch(totals.counts.data(), counts_, sizeof(uint64_t) * k_);
    fetch(&totals.objective, objective_, sizeof(double));
    waitFor(context_.stream);
    return totals;
}

int ClusteringRun::splitEmpty_(const Totals& totals) {
    std::vector<float> weights(
            totals.weights.begin() + frozen_, totals.weights.end());
    if (weights.empty()) {
        return 0;
    }
    const auto splits =
            faiss_bits::detail::splitEmptyClusters(vectors_.size(), weights);
    if (splits.empty()) {
        return 0;
    }
    const size_t bytes = sizeof(ClusterSplit) * splits.size();
    auto memory = allocTemporary(context_, bytes);
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            memory.get(),
            splits.data(),
            bytes,
            cudaMemcpyDefault,
            context_.stream));
    runClusterSplits(
            static_cast<const ClusterSplit*>(memory.get()),
            idx_t(splits.size()),
            d_,
            centroids_ + size_t(frozen_) * d_,
            context_.stream);
    return int(splits.size());
}

bool ClusteringRun::isConverged_(double earlyStop) const {
    const float last = stats_.back().obj;
    const float before = stats_[stats_.size() - 2].obj;
    return before != 0 &&
            std::abs(before - last) / std::abs(before) <= earlyStop;
}

} // namespace faiss_bits::gpu::detail
