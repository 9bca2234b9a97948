#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/knn/RowFacts.h"
#include "kernels/knn/fused/tensor/SearchImage.h"
#include "kernels/range/FlatRange.h"
#include "kernels/range/FlatRangePlan.h"
#include "kernels/range/boxes/RangeBoxes.h"
#include "tests/common/CanonicalOracle.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/common/HardVectors.h"
#include "tests/common/HostTypes.h"
#include "tests/common/MetricNames.h"
#include "tests/range/KeepingSink.h"

/// Range searches against the canonical distances of all pairs, computed on the
/// host by code of its own: ids, order and bits.
namespace faiss_bits::test {

struct RangeCase {
    Metric metric = Metric::L2;
    float p = 0;
    DataType dataType = DataType::Float32;
    int64_t n = 2000;
    int64_t q = 17;
    int d = 32;
    /// Components in [0, 1), or of one kind of Hard.
    bool isHard = false;
    Hard hard = Hard::Bytes;
    /// Components are 0 .. 3: many ties.
    bool areFew = false;
    bool withImage = false;    ///< given, where the metric may have one
    bool exactQueries = false; ///< not rounded to dataType
    int longQueries = 0; ///< every so manieth is three times as long; 0: none
    unsigned oneIn = 0;  ///< filter: so many are allowed; 0: all
    size_t maxScratch = size_t(1) << 32;
    /// Of all pairs, from which on tiles of all pairs are made; below zero: the
    /// plan's.
    double matrixShare = -1;
    int64_t maxCapacity = 0; ///< candidates at a time; 0: the plan's
    int64_t tileQueries = 0; ///< scanned for together; 0: the plan's
    /// Through boxes, of chunks of at most so many ids; 0: not.
    int64_t chunkIds = 0;
    /// Vectors in the order of their components: near ids are near each other.
    bool areSorted = false;
    int oddComponent = -1; ///< of the second query, which gets oddValue
    float oddValue = 0;
    uint32_t seed = 1;

    std::string describe() const {
        std::ostringstream text;
        text << metricName(metric) << " p=" << p << " type=" << int(dataType)
             << " n=" << n << " q=" << q << " d=" << d
             << " hard=" << (isHard ? int(hard) : -1) << " few=" << areFew
             << " image=" << withImage << " exact=" << exactQueries
             << " long=" << longQueries << " oneIn=" << oneIn
             << " maxScratch=" << maxScratch << " matrixShare=" << matrixShare
             << " capacity=" << maxCapacity << " tileQueries=" << tileQueries
             << " chunkIds=" << chunkIds << " sorted=" << areSorted
             << " oddComponent=" << oddComponent << " oddValue=" << oddValue
             << " seed=" << seed;
        return text.str();
    }
};

class RangeData {
   public:
    explicit RangeData(const RangeCase& c) : c(c) {
        std::mt19937 random(c.seed);
        vectors = make(c.n, random);
        roundAllTo(c.dataType, vectors);
        if (c.areSorted) {
            sortRows(vectors);
        }
        queries = make(c.q, random);
        for (int64_t i = 0; c.longQueries > 0 && i < c.q; i += c.longQueries) {
            for (int j = 0; j < c.d; ++j) {
                queries[i * c.d + j] *= 3;
            }
        }
        if (!c.exactQueries) {
            roundAllTo(c.dataType, queries);
        }
        if (c.isHard && c.hard == Hard::Infinite && c.q > 2) {
            queries[c.d] = NAN;
            queries[2 * c.d] = INFINITY;
        }
        if (c.oddComponent >= 0) {
            queries[c.d + c.oddComponent] = c.oddValue;
        }
        deviceVectors_ = DeviceBuffer<uint8_t>(packAs(c.dataType, vectors));
        deviceQueries_ = DeviceBuffer<uint8_t>(packAs(c.dataType, queries));
        if (c.exactQueries) {
            exact_ = DeviceBuffer<float>(queries);
        }
        if (c.oneIn > 0) {
            std::vector<uint32_t> bits((c.n + 31) / 32, 0);
            for (int64_t i = 0; i < c.n; ++i) {
                allowed.push_back(random() % c.oneIn == 0);
                bits[i / 32] |= uint32_t(allowed.back()) << (i % 32);
            }
            if (c.n % 32) {
                bits.back() |= ~0u << (c.n % 32); // may be anything
            }
            bits_ = DeviceBuffer<uint32_t>(bits);
        }
        if (c.withImage) {
            makeImage();
        }
    }

    FlatKnnProblem problem() const {
        FlatKnnProblem p;
        p.metric = c.metric;
        p.metricArg = c.p;
        p.dataType = c.dataType;
        p.numVectors = c.n;
        p.numQueries = c.q;
        p.d = c.d;
        p.vectors = deviceVectors_.data();
        p.queries = deviceQueries_.data();
        p.exactQueries = c.exactQueries ? exact_.data() : nullptr;
        p.allowedBits = c.oneIn > 0 ? bits_.data() : nullptr;
        p.searchImage = c.withImage ? image_.data() : nullptr;
        p.imageInOrder = c.withImage;
        p.device = deviceTraits();
        return p;
    }

    FlatRangePlan plan() const {
        FlatRangePlan plan = planFlatRange(problem(), c.maxScratch);
        if (c.matrixShare >= 0) {
            plan.matrixShare = c.matrixShare;
        }
        if (c.maxCapacity > 0) {
            plan.capacity = std::min(plan.capacity, c.maxCapacity);
        }
        if (c.tileQueries > 0) {
            plan.tileQueries = std::min(plan.tileQueries, c.tileQueries);
        }
        return plan;
    }

    RangeFound search(float radius, bool wantsResults = true) const {
        if (c.chunkIds > 0) {
            return searchBoxes(radius, wantsResults);
        }
        const FlatRangePlan plan = this->plan();
        DeviceBuffer<uint8_t> scratch(plan.bytes, 0xFF);
        TestStream stream;
        KeepingSink sink(c.q, wantsResults);
        runFlatRange(
                plan,
                problem(),
                radius,
                {scratch.data(), scratch.size()},
                stream,
                sink);
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
        EXPECT_EQ(sink.queriesSeen(), c.q);
        return std::move(sink.found);
    }

    /// Canonical distances of a query to all vectors.
    const std::vector<float>& distancesOf(int64_t query) const {
        all_.resize(c.q);
        std::vector<float>& all = all_[query];
        if (all.empty()) {
            all.resize(c.n);
            for (int64_t v = 0; v < c.n; ++v) {
                all[v] = canonicalDistance(
                        c.metric,
                        c.p,
                        queries.data() + query * c.d,
                        vectors.data() + v * c.d,
                        c.d);
            }
        }
        return all;
    }

    /// That about such a part of the vectors are within, of the first query:
    /// the distance of one of them, which is left out.
    float radiusFor(double part) const {
        std::vector<float> all = distancesOf(0);
        std::erase_if(all, [](float one) { return std::isnan(one); });
        std::sort(all.begin(), all.end());
        if (isSimilarity(c.metric)) {
            std::reverse(all.begin(), all.end());
        }
        return all.empty() ? 1 : all[size_t(part * double(all.size() - 1))];
    }

    /// Returns how many were found.
    int64_t expect(float radius) const {
        SCOPED_TRACE(c.describe() + " radius=" + std::to_string(radius));
        const RangeFound found = search(radius);
        // Beside the first ones only some, where the host would take long.
        const int64_t step = std::max<int64_t>(1, c.q * c.n * c.d / 60'000'000);
        for (int64_t q = 0; q < c.q; q += step) {
            const std::vector<float>& all = distancesOf(q);
            std::vector<float> distances;
            std::vector<int64_t> ids;
            for (int64_t v = 0; v < c.n; ++v) {
                const bool isIn = isSimilarity(c.metric) ? all[v] > radius
                                                         : all[v] < radius;
                if (isIn && (allowed.empty() || allowed[v])) {
                    distances.push_back(all[v]);
                    ids.push_back(v);
                }
            }
            if (found.ids[q] != ids) {
                ADD_FAILURE() << "query " << q << ": " << found.ids[q].size()
                              << " ids, expected " << ids.size();
                return -1;
            }
            if (std::memcmp(
                        found.distances[q].data(),
                        distances.data(),
                        distances.size() * sizeof(float)) != 0) {
                ADD_FAILURE() << "query " << q << ": other distances";
                return -1;
            }
        }
        return found.total;
    }

    const RangeCase c;
    std::vector<float> vectors; // [n, d]
    std::vector<float> queries; // [q, d]
    std::vector<bool> allowed;  // [n], or empty

   private:
    std::vector<float> make(int64_t count, std::mt19937& random) const {
        if (c.isHard) {
            return makeHard(c.hard, count, c.d, random());
        }
        std::vector<float> values(count * c.d);
        for (float& one : values) {
            one = c.areFew ? float(random() % 4)
                           : float(random() % 1000000) / 1e6f;
        }
        return values;
    }

    void sortRows(std::vector<float>& rows) const {
        std::vector<int64_t> order(c.n);
        std::iota(order.begin(), order.end(), int64_t(0));
        const auto row = [&](int64_t i) { return rows.begin() + i * c.d; };
        std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
            return std::lexicographical_compare(
                    row(a), row(a + 1), row(b), row(b + 1));
        });
        std::vector<float> sorted;
        for (const int64_t i : order) {
            sorted.insert(sorted.end(), row(i), row(i + 1));
        }
        rows = std::move(sorted);
    }

    RangeFound searchBoxes(float radius, bool wantsResults) const {
        RangeBoxesShape shape;
        shape.metric = c.metric;
        shape.d = c.d;
        shape.n = c.n;
        shape.chunkIds = c.chunkIds;
        DeviceBuffer<uint8_t> memory(rangeBoxesBytes(shape), 0xFF);
        WorkspaceSlices slices(Workspace{memory.data(), memory.size()});
        const RangeBoxes boxes(
                shape,
                reinterpret_cast<const float*>(deviceVectors_.data()),
                slices);
        TestStream stream;
        {
            DeviceBuffer<uint8_t> scratch(rangeBoxesScratchBytes(shape), 0xFF);
            runRangeBoxes(boxes, {scratch.data(), scratch.size()}, stream);
            BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
        }
        BoxRangePlan plan = planBoxRange(boxes, c.q, c.maxScratch);
        EXPECT_LE(plan.rows, std::max<int64_t>(c.q, 1));
        DeviceBuffer<uint8_t> scratch(plan.bytes, 0xFF);
        KeepingSink sink(c.q, wantsResults);
        runBoxRange(
                plan,
                boxes,
                c.q,
                reinterpret_cast<const float*>(deviceQueries_.data()),
                c.oneIn > 0 ? bits_.data() : nullptr,
                radius,
                deviceTraits().multiprocessors,
                {scratch.data(), scratch.size()},
                stream,
                sink);
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
        EXPECT_EQ(sink.queriesSeen(), c.q);
        return std::move(sink.found);
    }

    void makeImage() {
        FlatKnnProblem p = problem();
        p.searchImage = nullptr;
        DeviceBuffer<float> inverses(c.n);
        if (c.metric == Metric::Cosine) {
            runRowFacts(
                    RowFacts::InverseNorm,
                    p.vectors,
                    p.dataType,
                    true,
                    c.n,
                    c.d,
                    inverses.data(),
                    nullptr);
            p.vectorFacts = inverses.data();
        }
        image_ = DeviceBuffer<uint8_t>(searchImageBytes(p));
        WorkspaceSlices slices(Workspace{image_.data(), image_.size()});
        runSearchImage(p, SearchImage(p, slices), nullptr);
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
    }

    mutable std::vector<std::vector<float>> all_;
    DeviceBuffer<uint8_t> deviceVectors_;
    DeviceBuffer<uint8_t> deviceQueries_;
    DeviceBuffer<float> exact_;
    DeviceBuffer<uint32_t> bits_;
    DeviceBuffer<uint8_t> image_;
};

/// From none to all; the ends are distances of some vector.
inline void expectSelectivities(const RangeCase& c) {
    const RangeData data(c);
    for (const double part : {0.0, 0.001, 0.01, 0.1, 0.5, 1.0}) {
        if (data.expect(data.radiusFor(part)) < 0) {
            return;
        }
    }
    const float all = isSimilarity(c.metric) ? -INFINITY : INFINITY;
    data.expect(all);
    data.expect(-all);
}

} // namespace faiss_bits::test
