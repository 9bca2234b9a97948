#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/common/CanonicalOracle.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/common/HardVectors.h"
#include "tests/dropin/DropinTensors.h"
#include "tests/dropin/SomeRows.h"

/// Calls FAISS's scans of inverted lists, as the drop-in library defines them,
/// on lists of its own, and holds the result against the canonical one. What is
/// left to FAISS throws, as there is none.
namespace faiss_bits::test {

enum class Probes {
    Some,    ///< different lists in any order
    Nearest, ///< those of the nearest first vectors, as an index would
    None,    ///< some lists, and some that there are not
    Twice    ///< some lists more than once
};

struct ListCase {
    bool isL2 = true;
    bool interleaved = true;
    faiss::gpu::IndicesOptions indices = faiss::gpu::INDICES_64_BIT;
    int64_t n = 3000; ///< vectors of all lists
    int numLists = 20;
    int64_t q = 3;
    int d = 24;
    int nprobe = 5;
    int k = 10;
    Probes probes = Probes::Some;
    size_t shift = 0; ///< elements that queries and outputs are off

    Metric metric() const {
        return isL2 ? Metric::L2 : Metric::InnerProduct;
    }
    std::string describe() const {
        std::ostringstream text;
        text << (isL2 ? "L2" : "IP") << (interleaved ? " interleaved" : " rows")
             << " indices=" << int(indices) << " n=" << n
             << " lists=" << numLists << " q=" << q << " d=" << d
             << " nprobe=" << nprobe << " k=" << k << " probes=" << int(probes)
             << " shift=" << shift;
        return text.str();
    }
};

/// One case on host and device. Index: int or int64_t.
template <class Index>
class ListData {
   public:
    static constexpr int kOutputByte = 0xA5;
    static constexpr int kGroup = 32;

    ListData(
            const ListCase& c,
            std::vector<float> vectors,
            std::vector<float> queries)
            : case_(c),
              vectors_(std::move(vectors)),
              queries_(std::move(queries)),
              lists_(c.numLists),
              deviceQueries_(queries_, 0xFF, c.shift),
              outDistances_(c.q * c.k, kOutputByte, c.shift),
              outIds_(c.q * c.k, kOutputByte, c.shift) {
        std::mt19937_64 random(7);
        // A third of the lists is empty, and the first one is long.
        for (int64_t i = 0; i < c.n; ++i) {
            const size_t list =
                    random() % 16 ? random() % size_t(c.numLists) : 0;
            lists_[list % 3 == 2 ? list - 1 : list].push_back(i);
        }
        makeIds(random);
        makeProbes(random);
        upload();
    }

    /// Calls the function; waits only as far as that does. Throws what is left
    /// to FAISS.
    void call(cudaStream_t stream, bool hasScalarQuantizer = false) {
        const ListCase& c = case_;
        resources_.stream = stream;
        auto data = arrayOf<void*>(vectorPointers_, c.numLists, resources_);
        auto ids = arrayOf<void*>(idPointers_, c.numLists, resources_);
        auto lengths = arrayOf<Index>(lengths_, c.numLists, resources_);
        auto queries = matrixOf<Index>(deviceQueries_.data(), c.q, c.d);
        auto probes = matrixOf<Index>(deviceProbes_.data(), c.q, c.nprobe);
        auto distances = matrixOf<Index>(outDistances_.data(), c.q, c.k);
        auto outIds = matrixOf<Index>(outIds_.data(), c.q, c.k);
        // Of lists without residuals it is not to be read.
        faiss::gpu::Cube<float, Index> residuals{
                nullptr,
                {Index(c.nprobe * c.d), Index(c.d), 1},
                {Index(c.q), Index(c.nprobe), Index(c.d)}};
        auto* quantizer = hasScalarQuantizer
                ? reinterpret_cast<faiss::gpu::GpuScalarQuantizer*>(this)
                : nullptr;
        const auto metric =
                c.isL2 ? faiss::METRIC_L2 : faiss::METRIC_INNER_PRODUCT;
        if (c.interleaved) {
            faiss::gpu::runIVFInterleavedScan(
                    queries,
                    probes,
                    data,
                    ids,
                    c.indices,
                    lengths,
                    c.k,
                    metric,
                    false,
                    residuals,
                    quantizer,
                    distances,
                    outIds,
                    &resources_);
        } else {
            faiss::gpu::runIVFFlatScan(
                    queries,
                    probes,
                    data,
                    ids,
                    c.indices,
                    lengths,
                    Index(lists_[0].size()),
                    c.k,
                    metric,
                    false,
                    residuals,
                    quantizer,
                    distances,
                    outIds,
                    &resources_);
        }
    }

    void clearOutputs() {
        outDistances_.fillBytes(kOutputByte);
        outIds_.fillBytes(kOutputByte);
    }

    /// Some rows, the first and the last among them.
    ::testing::AssertionResult check(int64_t most = 16) {
        return someRowsAreCanonical(
                case_,
                outDistances_.download(),
                outIds_.download(),
                [&](int64_t row) { return wanted(row); },
                most);
    }

   private:
    bool areGiven() const {
        return case_.indices == faiss::gpu::INDICES_64_BIT ||
                case_.indices == faiss::gpu::INDICES_32_BIT;
    }

    /// Numbers without order, below zero too, but not -1.
    void makeIds(std::mt19937_64& random) {
        const int64_t step = case_.indices == faiss::gpu::INDICES_64_BIT
                ? (int64_t(1) << 33) + 1
                : 5;
        ids_.resize(size_t(case_.n));
        std::iota(ids_.begin(), ids_.end(), -case_.n / 3);
        std::shuffle(ids_.begin(), ids_.end(), random);
        for (int64_t& id : ids_) {
            id = id < 0 ? id * 3 - 7 : id * step;
        }
    }

    void makeProbes(std::mt19937_64& random) {
        const ListCase& c = case_;
        std::vector<int64_t> order(size_t(c.numLists));
        for (int64_t i = 0; i < c.q; ++i) {
            std::iota(order.begin(), order.end(), 0);
            std::shuffle(order.begin(), order.end(), random);
            if (c.probes == Probes::Nearest) {
                sortByDistance(i, order);
            }
            for (int p = 0; p < c.nprobe; ++p) {
                int64_t list = order[size_t(p % c.numLists)];
                if (c.probes == Probes::Twice && p % 3 == 1) {
                    list = order[0];
                }
                if (c.probes == Probes::None && p % 2 == i % 2) {
                    const int64_t outside[] = {
                            -1, c.numLists, INT64_MIN, INT64_MAX};
                    list = outside[(p / 2) % 4];
                }
                probes_.push_back(list);
            }
        }
    }

    /// Lists by the distance of their first vector.
    void sortByDistance(int64_t query, std::vector<int64_t>& order) const {
        std::vector<double> distances(order.size());
        for (size_t l = 0; l < distances.size(); ++l) {
            const double distance = lists_[l].empty()
                    ? std::nan("")
                    : distanceOf(query, lists_[l][0]) * (case_.isL2 ? 1 : -1);
            distances[l] = std::isnan(distance)
                    ? std::numeric_limits<double>::infinity()
                    : distance;
        }
        std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
            return distances[size_t(a)] < distances[size_t(b)];
        });
    }

    float distanceOf(int64_t query, int64_t vector) const {
        return canonicalDistance(
                case_.metric(),
                0,
                queries_.data() + query * case_.d,
                vectors_.data() + vector * case_.d,
                case_.d);
    }

    void upload() {
        const ListCase& c = case_;
        std::vector<void*> vectorPointers;
        std::vector<void*> idPointers;
        std::vector<Index> lengths;
        for (const auto& list : lists_) {
            const size_t padded = c.interleaved
                    ? (list.size() + kGroup - 1) / kGroup * kGroup
                    : list.size();
            // Padding is NaN, which a stray read would bring into results.
            std::vector<float> values(padded * c.d, std::nanf(""));
            for (size_t i = 0; i < list.size(); ++i) {
                for (int j = 0; j < c.d; ++j) {
                    const size_t place = c.interleaved
                            ? (i / kGroup * c.d + j) * kGroup + i % kGroup
                            : i * c.d + j;
                    values[place] = vectors_[list[i] * c.d + j];
                }
            }
            vectorBuffers_.emplace_back(values);
            vectorPointers.push_back(
                    list.empty() ? nullptr : vectorBuffers_.back().data());
            idPointers.push_back(uploadIds(list));
            lengths.push_back(Index(list.size()));
        }
        for (int more = 0; more < 3; ++more) {
            vectorPointers.push_back(nullptr);
            idPointers.push_back(nullptr);
            lengths.push_back(Index(1) << 30);
        }
        vectorPointers_ = DeviceBuffer<void*>(vectorPointers);
        idPointers_ = DeviceBuffer<void*>(idPointers);
        lengths_ = DeviceBuffer<Index>(lengths);
        deviceProbes_ = DeviceBuffer<int64_t>(probes_);
    }

    void* uploadIds(const std::vector<int64_t>& list) {
        if (list.empty() || !areGiven()) {
            return nullptr;
        }
        std::vector<int64_t> ids;
        for (int64_t vector : list) {
            ids.push_back(ids_[size_t(vector)]);
        }
        if (case_.indices == faiss::gpu::INDICES_64_BIT) {
            idBuffers64_.emplace_back(ids);
            return idBuffers64_.back().data();
        }
        idBuffers32_.emplace_back(std::vector<int32_t>(ids.begin(), ids.end()));
        return idBuffers32_.back().data();
    }

    /// The canonical result, without what FAISS never returns.
    std::vector<Ranked> wanted(int64_t row) const {
        const ListCase& c = case_;
        const double worst = std::numeric_limits<float>::max();
        std::vector<Ranked> candidates;
        for (int p = 0; p < c.nprobe; ++p) {
            const int64_t list = probes_[size_t(row * c.nprobe + p)];
            if (list < 0 || list >= c.numLists) {
                continue;
            }
            const auto& members = lists_[size_t(list)];
            for (size_t i = 0; i < members.size(); ++i) {
                const double key = distanceOf(row, members[i]);
                if (c.isL2 ? key < worst : key > -worst) {
                    candidates.push_back(
                            {key,
                             areGiven() ? ids_[size_t(members[i])]
                                        : list << 32 | int64_t(i)});
                }
            }
        }
        return topK(candidates, c.k, !c.isL2);
    }

    ListCase case_;
    std::vector<float> vectors_;              // [n, d]
    std::vector<float> queries_;              // [q, d]
    std::vector<std::vector<int64_t>> lists_; // numbers of vectors
    std::vector<int64_t> ids_;                // [n]
    std::vector<int64_t> probes_;             // [q, nprobe]
    faiss::gpu::GpuResources resources_;
    std::vector<DeviceBuffer<float>> vectorBuffers_;
    std::vector<DeviceBuffer<int64_t>> idBuffers64_;
    std::vector<DeviceBuffer<int32_t>> idBuffers32_;
    DeviceBuffer<void*> vectorPointers_;
    DeviceBuffer<void*> idPointers_;
    DeviceBuffer<Index> lengths_;
    DeviceBuffer<int64_t> deviceProbes_;
    DeviceBuffer<float> deviceQueries_;
    DeviceBuffer<float> outDistances_;
    DeviceBuffer<int64_t> outIds_;
};

template <class Index>
void expectScansAs(
        const ListCase& c,
        const std::vector<float>& vectors,
        const std::vector<float>& queries,
        cudaStream_t stream = nullptr) {
    ListData<Index> data(c, vectors, queries);
    ASSERT_NO_THROW(data.call(stream)) << c.describe();
    ASSERT_TRUE(data.check(c.n > 10000 ? 5 : 16));
}

/// The case through both symbols of its function.
inline void expectScans(const ListCase& c, Hard kind) {
    SCOPED_TRACE("data " + std::to_string(int(kind)));
    const auto vectors = makeHard(kind, c.n, c.d, 1);
    const auto queries = makeHard(kind, c.q, c.d, 2);
    expectScansAs<int>(c, vectors, queries);
    expectScansAs<int64_t>(c, vectors, queries);
}

} // namespace faiss_bits::test
