#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/ivf/IvfScratch.h"
#include "tests/common/CanonicalOracle.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/ivf/ListsOfCase.h"

/// runIvfKnn on lists of a test's own, without FAISS, against the canonical
/// distances of the decoded vectors.
namespace faiss_bits::test {

class KernelLists : public ListsOfCase {
   public:
    explicit KernelLists(const KernelCase& which) : ListsOfCase(which) {
        std::mt19937 random(c.seed);
        code();
        queries_ = fillRows(c.fill, c.q, c.d, c.seed + 3);
        const int numLists = int(c.lengths.size());
        // Any list, some twice, some numbers of none. Some queries are vectors.
        for (idx_t i = 0; i < c.q; ++i) {
            for (int p = 0; p < c.nprobe; ++p) {
                const int any = int(random() % (numLists * 20));
                probes_.push_back(
                        any == 0           ? -1
                                : any == 1 ? numLists
                                           : any % numLists);
            }
            const auto& list = vectors_[random() % numLists];
            if (i % 7 == 3 && !list.empty()) {
                std::copy_n(list.begin(), c.d, queries_.begin() + i * c.d);
            }
        }
        number(random);
        filter(random);
        upload();
        deviceQueries_ = DeviceBuffer<float>(queries_);
        deviceProbes_ = DeviceBuffer<int64_t>(probes_);
    }

    /// Whose plan is by estimates, in this mode: forced by what only plans
    /// read. Outputs are not set.
    IvfKnnProblem problem(EstimateMode mode) const {
        IvfKnnProblem p = plainProblem();
        p.device.singleToDouble = 1 << 20; // few as the pairs are
        if (mode == EstimateMode::All) {
            p.selectedShare = 0; // near lists would have too few
            return p;
        }
        // Greater numbers than need be, until less is kept of near lists than
        // it costs to read them once more.
        const IvfKnnProblem exact = p;
        constexpr idx_t kMostVectors = idx_t(1) << 30;
        for (idx_t times = 1; exact.mostVectors * times <= kMostVectors;
             times *= 2) {
            p.mostVectors = exact.mostVectors * times;
            p.longestList = exact.longestList * times;
            p.selectedShare = exact.selectedShare / times;
            if (planIvfKnn(p, kMaxBytes).room > 0) {
                break;
            }
        }
        return p;
    }

    IvfKnnProblem plainProblem() const {
        IvfKnnProblem p;
        p.metric = c.metric;
        p.lists = lists_;
        p.numQueries = c.q;
        p.nprobe = c.nprobe;
        p.k = c.k;
        p.longestList = *std::max_element(c.lengths.begin(), c.lengths.end());
        for (idx_t i = 0; i < c.q; ++i) {
            idx_t vectors = 0;
            for (int64_t list : probesOf(i)) {
                vectors += isList(list) ? c.lengths[list] : 0;
            }
            p.mostVectors = std::max(p.mostVectors, vectors);
        }
        p.selectedShare = c.selected;
        p.queries = deviceQueries_.data();
        p.probes = deviceProbes_.data();
        p.device = deviceTraits();
        if (c.multiprocessors > 0) {
            p.device.multiprocessors = c.multiprocessors;
        }
        return p;
    }

    KernelResult run(
            const IvfKnnProblem& p,
            size_t maxBytes = kMaxBytes,
            int scratchByte = 0xFF) const {
        return run(planIvfKnn(p, maxBytes), p, scratchByte);
    }

    /// Into fresh guarded outputs, with exactly the plan's scratch.
    KernelResult run(
            const IvfKnnPlan& plan,
            IvfKnnProblem p,
            int scratchByte = 0xFF) const {
        const DeviceBuffer<float> distances(c.q * c.k, 0xA5);
        const DeviceBuffer<int64_t> ids(c.q * c.k, 0xA5);
        const DeviceBuffer<uint8_t> scratch(plan.bytes, scratchByte);
        p.outDistances = distances.data();
        p.outIds = ids.data();
        const TestStream stream;
        const Workspace workspace = {scratch.data(), scratch.size()};
        runIvfKnn(plan, p, workspace, stream);
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
        KernelResult result;
        result.distances = distances.download();
        result.ids = ids.download();
        if (plan.byEstimates()) {
            WorkspaceSlices slices(workspace);
            result.lost = download(IvfAgainScratch(p, plan, slices).count);
            // Queries that are searched again take this memory.
            if (result.lost == 0) {
                const IvfScratch used(p, plan, slices);
                result.scored = download(
                        used.rescored.numPlaced + kIvfCandidatesPlaced);
            }
        }
        return result;
    }

    /// By estimates of this mode; the plan must be one.
    KernelResult run(EstimateMode mode, size_t maxBytes = kMaxBytes) const {
        const IvfKnnProblem p = problem(mode);
        const IvfKnnPlan plan = planIvfKnn(p, maxBytes);
        EXPECT_TRUE(plan.byEstimates()) << plan.toString();
        EXPECT_EQ(plan.room > 0, mode == EstimateMode::Near)
                << plan.toString() << " " << c;
        return run(p, maxBytes);
    }

    void expectExact(const KernelResult& found) const {
        for (idx_t i = 0; i < c.q; ++i) {
            ASSERT_TRUE(isCanonical(
                    best(i),
                    c.metric == Metric::InnerProduct,
                    found.distances.data() + i * c.k,
                    found.ids.data() + i * c.k,
                    c.k))
                    << "query " << i << " of " << c;
        }
    }

    /// Both modes; returns how many queries were searched again.
    idx_t expectExactByEstimates() const {
        idx_t lost = 0;
        for (EstimateMode mode : {EstimateMode::All, EstimateMode::Near}) {
            SCOPED_TRACE(mode == EstimateMode::All ? "all" : "near");
            const KernelResult found = run(mode);
            expectExact(found);
            lost += found.lost;
        }
        return lost;
    }

    /// [q, d]
    const std::vector<float>& queries() const {
        return queries_;
    }

    /// What a query finds in the lists of query `row`, in their order and in
    /// that of their vectors; none that is NaN away.
    std::vector<Ranked> reachable(idx_t row, const float* query) const {
        std::vector<Ranked> candidates;
        for (int64_t list : probesOf(row)) {
            for (int i = 0; isList(list) && i < c.lengths[list]; ++i) {
                if (!isSelected_[list][i]) {
                    continue;
                }
                const float distance = canonicalDistance(
                        c.metric,
                        0,
                        query,
                        vectors_[list].data() + size_t(i) * c.d,
                        c.d);
                if (!std::isnan(distance)) {
                    candidates.push_back({double(distance), ids_[list][i]});
                }
            }
        }
        return candidates;
    }

    static constexpr size_t kMaxBytes = size_t(448) << 20;

   private:
    static uint32_t download(const uint32_t* number) {
        uint32_t value = 0;
        BITS_CUDA_CHECK(cudaMemcpy(
                &value, number, sizeof(value), cudaMemcpyDeviceToHost));
        return value;
    }

    bool isList(int64_t list) const {
        return list >= 0 && list < int64_t(c.lengths.size());
    }
    std::vector<int64_t> probesOf(idx_t query) const {
        const auto first = probes_.begin() + query * c.nprobe;
        return {first, first + c.nprobe};
    }

    const std::vector<Ranked>& best(idx_t query) const {
        if (best_.empty()) {
            best_.resize(c.q);
            for (idx_t i = 0; i < c.q; ++i) {
                best_[i] = search(i);
            }
        }
        return best_[query];
    }

    std::vector<Ranked> search(idx_t query) const {
        return topK(
                reachable(query, queries_.data() + query * c.d),
                c.k,
                c.metric == Metric::InnerProduct);
    }

    std::vector<float> queries_;
    std::vector<int64_t> probes_;
    mutable std::vector<std::vector<Ranked>> best_;
    DeviceBuffer<float> deviceQueries_;
    DeviceBuffer<int64_t> deviceProbes_;
};

} // namespace faiss_bits::test
