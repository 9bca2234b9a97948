#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <unordered_map>
#include <vector>

#include <faiss/IndexFlat.h>
#include <faiss/IndexIVFFlat.h>

#include "faiss_bits/ivf/GpuIndexBitsIVFFlat.h"
#include "tests/flat/IndexHarness.h"

/// What the tests of inverted lists on the GPU share.
namespace faiss_bits::test {

using faiss::gpu::GpuIndexIVFFlatConfig;
using gpu::GpuIndexBitsIVFFlat;

struct IvfCase {
    faiss::MetricType metric = faiss::METRIC_L2;
    int64_t n = 1000;
    int d = 16;
    int nlist = 10;
    int64_t q = 20;
    Fill fill = Fill::Uniform;
    bool interleaved = true;
    faiss::gpu::IndicesOptions indices = faiss::gpu::INDICES_64_BIT;
    uint32_t seed = 1;
};

inline std::ostream& operator<<(std::ostream& out, const IvfCase& c) {
    return out << (c.metric == faiss::METRIC_L2 ? "L2" : "IP") << " n=" << c.n
               << " d=" << c.d << " nlist=" << c.nlist << " q=" << c.q
               << (c.interleaved ? " interleaved" : " rows")
               << " indices=" << int(c.indices) << " seed=" << c.seed;
}

/// An IVF index on the CPU whose centroids are some of the vectors, each
/// vector's id a number without order, and what a search of it should find.
class IvfData {
   public:
    explicit IvfData(const IvfCase& which)
            : c(which),
              vectors(makeVectors(c.n, c.d, c.seed, c.fill)),
              queries(makeVectors(c.q, c.d, c.seed + 1000, c.fill)),
              ids(size_t(c.n)) {
        std::mt19937_64 random(c.seed);
        std::iota(ids.begin(), ids.end(), -c.n / 3);
        std::shuffle(ids.begin(), ids.end(), random);
        // -1 is no id; others need more than 32 bits where those are kept.
        const int64_t factor = c.indices == faiss::gpu::INDICES_32_BIT
                ? 1
                : (int64_t(1) << 33) + 1;
        for (int64_t& id : ids) {
            id = id < 0 ? id * 3 - 7 : id * factor;
        }
        build();
    }

    /// With vectors and queries of the caller's.
    IvfData(const IvfCase& which,
            std::vector<float> theVectors,
            std::vector<float> theQueries,
            std::vector<int64_t> theIds)
            : c(which),
              vectors(std::move(theVectors)),
              queries(std::move(theQueries)),
              ids(std::move(theIds)) {
        build();
    }

    GpuIndexIVFFlatConfig config() const {
        GpuIndexIVFFlatConfig config;
        config.interleavedLayout = c.interleaved;
        config.indicesOptions = c.indices;
        return config;
    }

    std::unique_ptr<GpuIndexBitsIVFFlat> makeIndex(
            faiss::gpu::GpuResourcesProvider* provider =
                    sharedResources()) const {
        return std::make_unique<GpuIndexBitsIVFFlat>(
                provider, cpu.get(), config());
    }

    Metric metric() const {
        return c.metric == faiss::METRIC_L2 ? Metric::L2 : Metric::InnerProduct;
    }

    /// The lists that a query probes, nearest first.
    std::vector<int64_t> probesOf(int64_t query, int nprobe) const {
        std::vector<int64_t> lists;
        for (const Ranked& found : canonicalTopK(
                     metric(),
                     0,
                     queries.data() + query * c.d,
                     centroids.data(),
                     c.nlist,
                     c.d,
                     nprobe)) {
            lists.push_back(found.id);
        }
        return lists;
    }

    /// What a search in these lists finds. With `places` ids are
    /// list << 32 | place.
    std::vector<Ranked> bestOf(
            int64_t query,
            const std::vector<int64_t>& lists,
            int64_t k,
            bool places = false) const {
        std::vector<Ranked> candidates;
        for (int64_t list : lists) {
            if (list < 0 || list >= c.nlist) {
                continue;
            }
            const int64_t* listIds = cpu->invlists->get_ids(list);
            const auto* listVectors = reinterpret_cast<const float*>(
                    cpu->invlists->get_codes(list));
            for (size_t i = 0; i < cpu->invlists->list_size(list); ++i) {
                if (selects && !selects(selectorIdOf(list, i))) {
                    continue;
                }
                const float distance = canonicalDistance(
                        metric(),
                        0,
                        queries.data() + query * c.d,
                        listVectors + i * c.d,
                        c.d);
                if (!std::isnan(distance)) {
                    candidates.push_back(
                            {double(distance),
                             places ? list << 32 | int64_t(i) : listIds[i]});
                }
            }
        }
        return topK(candidates, k, c.metric == faiss::METRIC_INNER_PRODUCT);
    }

    /// The same as the index returns it.
    std::vector<Ranked> resultOf(
            int64_t query,
            const std::vector<int64_t>& lists,
            int64_t k) const {
        if (c.indices == faiss::gpu::INDICES_64_BIT ||
            c.indices == faiss::gpu::INDICES_32_BIT) {
            return bestOf(query, lists, k);
        }
        auto best = bestOf(query, lists, k, true);
        if (c.indices == faiss::gpu::INDICES_CPU) {
            for (Ranked& one : best) {
                const int64_t list = one.id >> 32;
                one.id = cpu->invlists->get_ids(list)[one.id & 0xffffffff];
            }
        }
        return best;
    }

    void expectResults(
            const SearchOutput& found,
            int64_t k,
            const std::vector<std::vector<int64_t>>& lists) const {
        for (int64_t i = 0; i < c.q; ++i) {
            ASSERT_TRUE(isCanonical(
                    resultOf(i, lists[i], k),
                    c.metric == faiss::METRIC_INNER_PRODUCT,
                    found.distances.data() + i * k,
                    found.labels.data() + i * k,
                    k))
                    << "query " << i << " of " << c << " k=" << k;
        }
    }

    void expectExact(const SearchOutput& found, int nprobe, int64_t k) const {
        SCOPED_TRACE(testing::Message() << "nprobe=" << nprobe);
        std::vector<std::vector<int64_t>> lists;
        for (int64_t i = 0; i < c.q; ++i) {
            lists.push_back(probesOf(i, nprobe));
        }
        expectResults(found, k, lists);
    }

    /// The id that a selector knows of a vector.
    int64_t selectorIdOf(int64_t list, int64_t place) const {
        return c.indices == faiss::gpu::INDICES_IVF
                ? list << 32 | place
                : int64_t(cpu->invlists->get_ids(list)[place]);
    }

    /// Those of all vectors, list by list.
    std::vector<int64_t> selectorIds() const {
        std::vector<int64_t> all;
        for (int64_t l = 0; l < c.nlist; ++l) {
            for (size_t i = 0; i < cpu->invlists->list_size(l); ++i) {
                all.push_back(selectorIdOf(l, int64_t(i)));
            }
        }
        return all;
    }

    /// What a filter selects; empty: all.
    std::function<bool(int64_t)> selects;

    const IvfCase c;
    std::vector<float> vectors;
    std::vector<float> queries;
    std::vector<int64_t> ids;
    std::vector<float> centroids;
    std::unique_ptr<faiss::IndexFlat> quantizer;
    std::unique_ptr<faiss::IndexIVFFlat> cpu;

   private:
    void build() {
        // Those of a few parts of the data, so that lists are uneven; with few
        // vectors some are the same, and lists empty.
        centroids.resize(size_t(c.nlist) * c.d);
        std::mt19937_64 random(c.seed + 1);
        for (int l = 0; l < c.nlist; ++l) {
            const int64_t from = c.n == 0 ? 0
                    : l % 2               ? int64_t(random() % c.n)
                                          : int64_t(random() % (c.n / 8 + 1));
            for (int i = 0; i < c.d; ++i) {
                const float value =
                        c.n == 0 ? float(l + i) : vectors[from * c.d + i];
                centroids[size_t(l) * c.d + i] =
                        std::isfinite(value) ? value : 0.5f;
            }
        }
        quantizer = std::make_unique<faiss::IndexFlat>(c.d, c.metric);
        quantizer->add(c.nlist, centroids.data());
        cpu = std::make_unique<faiss::IndexIVFFlat>(
                quantizer.get(), c.d, c.nlist, c.metric);
        cpu->is_trained = true;
        const bool allFinite =
                std::all_of(vectors.begin(), vectors.end(), [](float value) {
                    return std::abs(value) < 1e18f;
                });
        if (allFinite && c.n > 0) {
            cpu->add_with_ids(c.n, vectors.data(), ids.data());
        } else {
            addOneByOne();
        }
    }

    /// FAISS 1.7.3 on the CPU finds no list for some vectors that are not
    /// finite, and takes any.
    void addOneByOne() {
        for (int64_t i = 0; i < c.n; ++i) {
            const float* x = vectors.data() + i * c.d;
            const auto nearest = canonicalTopK(
                    metric(), 0, x, centroids.data(), c.nlist, c.d, 1);
            if (!nearest.empty()) {
                cpu->invlists->add_entry(
                        size_t(nearest[0].id),
                        ids[i],
                        reinterpret_cast<const uint8_t*>(x));
            }
            ++cpu->ntotal;
        }
    }
};

} // namespace faiss_bits::test
