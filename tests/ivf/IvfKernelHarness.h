#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/ivf/IvfScratch.h"
#include "tests/common/CanonicalOracle.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/ivf/IvfKernelCase.h"
#include "tests/ivf/ListCodes.h"

/// runIvfKnn on lists of a test's own, without FAISS, against the canonical
/// distances of the decoded vectors.
namespace faiss_bits::test {

class KernelLists {
   public:
    explicit KernelLists(const KernelCase& which) : c(which) {
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
    }

    KernelLists(const KernelLists&) = delete;
    KernelLists& operator=(const KernelLists&) = delete;

    /// Whose plan is by estimates, in this mode: forced by what only plans
    /// read. Outputs are not set.
    IvfKnnProblem problem(EstimateMode mode) const {
        IvfKnnProblem p = plainProblem();
        p.device.singleToDouble = 64; // no distances in tiles
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

    const KernelCase c;
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

    void code() {
        for (size_t l = 0; l < c.lengths.size(); ++l) {
            vectors_.push_back(fillRows(
                    c.fill, c.lengths[l], c.d, c.seed * 1000 + uint32_t(l)));
        }
        std::vector<float> centroids;
        if (c.isResidual) {
            centroids =
                    fillRows(c.fill, idx_t(c.lengths.size()), c.d, c.seed + 1);
            centroids_ = DeviceBuffer<float>(centroids);
            lists_.decoding.centroids = centroids_.data();
        }
        // Ranges and codebooks are of the values, too.
        const ListCoder coder(
                c.coding, c.d, c.numParts, c.partBits, [&](idx_t n) {
                    return fillRows(c.fill, n, 1, c.seed + 2);
                });
        trained_ = DeviceBuffer<float>(coder.trained());
        if (c.coding == ListCoding::Product) {
            lists_.decoding.codebook = trained_.data();
            lists_.decoding.numParts = c.numParts;
            lists_.decoding.partBits = c.partBits;
        } else if (isScalar(c.coding)) {
            lists_.decoding.trained = trained_.data();
            lists_.decoding.ranges = c.d;
            lists_.decoding.byInverse = coder.byInverse();
        }
        for (size_t l = 0; l < c.lengths.size(); ++l) {
            codes_.emplace_back(coder.code(
                    vectors_[l],
                    c.lengths[l],
                    c.layout,
                    c.seed * 100 + uint32_t(l)));
            for (size_t i = 0; c.isResidual && i < vectors_[l].size(); ++i) {
                vectors_[l][i] += centroids[l * c.d + i % c.d];
            }
        }
    }

    /// Ids in no order.
    void number(std::mt19937& random) {
        const int64_t n =
                std::accumulate(c.lengths.begin(), c.lengths.end(), int64_t(0));
        std::vector<int64_t> all(n);
        std::iota(all.begin(), all.end(), int64_t(0));
        std::shuffle(all.begin(), all.end(), random);
        auto next = all.begin();
        for (size_t l = 0; l < c.lengths.size(); ++l) {
            ids_.emplace_back();
            for (int i = 0; i < c.lengths[l]; ++i) {
                const int64_t id = *next++;
                ids_[l].push_back(
                        c.idKind == ListIds::Places ? int64_t(l) << 32 | i
                                : c.idKind == ListIds::Given32
                                ? id
                                : id * ((int64_t(1) << 33) + 1));
            }
        }
    }

    void filter(std::mt19937& random) {
        std::uniform_real_distribution<double> unit(0, 1);
        const int longest =
                *std::max_element(c.lengths.begin(), c.lengths.end());
        const int evenWords = std::max(1, (longest + 31) / 32);
        std::vector<uint32_t> words, firstWords;
        for (int length : c.lengths) {
            firstWords.push_back(uint32_t(words.size()));
            std::vector<bool> selected(length);
            words.resize(
                    words.size() +
                    (c.evenWords ? evenWords : (length + 31) / 32));
            for (int i = 0; i < length; ++i) {
                selected[i] = c.selected == 1 || unit(random) < c.selected;
                words[firstWords.back() + i / 32] |= uint32_t(selected[i])
                        << i % 32;
            }
            isSelected_.push_back(std::move(selected));
        }
        firstWords.push_back(uint32_t(words.size()));
        if (c.selected == 1) {
            return;
        }
        words_ = DeviceBuffer<uint32_t>(words);
        firstWords_ = DeviceBuffer<uint32_t>(firstWords);
        lists_.selectedBits = words_.data();
        lists_.firstWords = c.evenWords ? nullptr : firstWords_.data();
        lists_.wordsOfList = c.evenWords ? uint32_t(evenWords) : 0;
    }

    /// Behind the bytes so far, as by FAISS on 256 bytes, or `shift` behind
    /// them; returns where.
    template <class T>
    static size_t append(
            std::vector<uint8_t>& bytes,
            const std::vector<T>& values,
            int shift = 0) {
        constexpr size_t kAlignment = 256;
        const size_t at =
                (bytes.size() + kAlignment) / kAlignment * kAlignment + shift;
        bytes.resize(at, 0xFF);
        const auto* from = reinterpret_cast<const uint8_t*>(values.data());
        bytes.insert(bytes.end(), from, from + values.size() * sizeof(T));
        return at;
    }

    void upload() {
        deviceQueries_ = DeviceBuffer<float>(queries_);
        deviceProbes_ = DeviceBuffer<int64_t>(probes_);
        // Lists side by side, with NaN and -1 between them.
        std::vector<uint8_t> codes, ids;
        std::vector<size_t> codesAt, idsAt;
        for (size_t l = 0; l < c.lengths.size(); ++l) {
            codesAt.push_back(append(codes, codes_[l], c.listShift));
            if (c.idKind == ListIds::Given32) {
                idsAt.push_back(append(
                        ids,
                        std::vector<int32_t>(ids_[l].begin(), ids_[l].end())));
            } else {
                idsAt.push_back(append(ids, ids_[l]));
            }
        }
        deviceCodes_ = DeviceBuffer<uint8_t>(codes);
        deviceIds_ = DeviceBuffer<uint8_t>(ids);
        std::vector<const void*> codePointers, idPointers;
        for (size_t l = 0; l < c.lengths.size(); ++l) {
            const bool isThere = c.lengths[l] > 0;
            codePointers.push_back(
                    isThere ? deviceCodes_.data() + codesAt[l] : nullptr);
            idPointers.push_back(
                    isThere ? deviceIds_.data() + idsAt[l] : nullptr);
        }
        codePointers_ = DeviceBuffer<const void*>(codePointers);
        idPointers_ = DeviceBuffer<const void*>(idPointers);
        lengths64_ = DeviceBuffer<int64_t>(
                std::vector<int64_t>(c.lengths.begin(), c.lengths.end()));
        lengths32_ = DeviceBuffer<int32_t>(
                std::vector<int32_t>(c.lengths.begin(), c.lengths.end()));
        lists_.numLists = idx_t(c.lengths.size());
        lists_.d = c.d;
        lists_.numVectors =
                std::accumulate(c.lengths.begin(), c.lengths.end(), idx_t(0));
        lists_.layout = c.layout;
        lists_.coding = c.coding;
        lists_.vectors = codePointers_.data();
        lists_.lengths = c.lengths64
                ? static_cast<const void*>(lengths64_.data())
                : lengths32_.data();
        lists_.lengths64 = c.lengths64;
        lists_.idKind = c.idKind;
        lists_.ids = c.idKind == ListIds::Places ? nullptr : idPointers_.data();
    }

    std::vector<std::vector<float>> vectors_; // decoded
    std::vector<std::vector<uint8_t>> codes_;
    std::vector<std::vector<int64_t>> ids_;
    std::vector<std::vector<bool>> isSelected_;
    std::vector<float> queries_;
    std::vector<int64_t> probes_;
    mutable std::vector<std::vector<Ranked>> best_;
    IvfLists lists_;
    DeviceBuffer<float> centroids_, trained_, deviceQueries_;
    DeviceBuffer<int64_t> deviceProbes_, lengths64_;
    DeviceBuffer<int32_t> lengths32_;
    DeviceBuffer<uint32_t> words_, firstWords_;
    DeviceBuffer<uint8_t> deviceCodes_, deviceIds_;
    DeviceBuffer<const void*> codePointers_, idPointers_;
};

} // namespace faiss_bits::test
