#pragma once

#include <cmath>
#include <functional>

#include <cuda_runtime_api.h>
#include <faiss/IndexIVFPQ.h>
#include <faiss/IndexScalarQuantizer.h>

#include "tests/common/CapturedGraph.h"
#include "tests/common/HalfBits.h"
#include "tests/flat/IndexHarness.h"
#include "tests/ivf/IvfHarness.h"

/// What the tests of inverted lists of codes share. Decoding is written here
/// once more, of FAISS's layout on the CPU.
namespace faiss_bits::test {

/// Code number i of `bits` bits each, the first in the lowest bits.
inline uint32_t codeAt(const uint8_t* codes, int64_t i, int bits) {
    uint32_t code = 0;
    for (int b = 0; b < bits; ++b) {
        const int64_t bit = i * bits + b;
        code |= uint32_t(codes[bit / 8] >> (bit % 8) & 1) << b;
    }
    return code;
}

inline float halfAt(const uint8_t* codes, int64_t i) {
    uint16_t bits;
    std::memcpy(&bits, codes + 2 * i, sizeof(bits));
    return float16Value(bits);
}

/// The vector of a code, as FAISS's GPU decodes it, each operation rounded.
inline void decodeVector(
        const faiss::IndexIVFScalarQuantizer& index,
        const uint8_t* codes,
        float* x) {
    using faiss::ScalarQuantizer;
    const auto& sq = index.sq;
    const auto type = sq.qtype;
    const bool isUniform = type == ScalarQuantizer::QT_8bit_uniform ||
            type == ScalarQuantizer::QT_4bit_uniform;
    const int bits = type == ScalarQuantizer::QT_6bit ? 6
            : type == ScalarQuantizer::QT_4bit ||
                    type == ScalarQuantizer::QT_4bit_uniform
            ? 4
            : 8;
    const float most = float((1 << bits) - 1);
    for (int i = 0; i < index.d; ++i) {
        if (type == ScalarQuantizer::QT_fp16) {
            x[i] = halfAt(codes, i);
            continue;
        }
        const float code = float(codeAt(codes, i, bits));
        if (type == ScalarQuantizer::QT_8bit_direct) {
            x[i] = code;
            continue;
        }
        const float least = sq.trained[isUniform ? 0 : i];
        const float range = sq.trained[isUniform ? 1 : index.d + i];
        const float inverse = 1.0f / most;
        const float step = type == ScalarQuantizer::QT_4bit ? range / most
                                                            : range * inverse;
        x[i] = std::fma(code, step, std::fma(0.5f, step, least));
    }
}

inline void decodeVector(
        const faiss::IndexIVFPQ& index,
        const uint8_t* codes,
        float* x) {
    const auto& pq = index.pq;
    for (int i = 0; i < index.d; ++i) {
        const size_t part = size_t(i) / pq.dsub;
        const uint32_t code = codeAt(codes, int64_t(part), int(pq.nbits));
        x[i] = pq.centroids[(part * pq.ksub + code) * pq.dsub + i % pq.dsub];
    }
}

/// Makes the lists of `oracle` those of `index`, decoded, and its centroids
/// those of the index.
template <class Coded>
void decodeLists(const Coded& index, IvfData& oracle) {
    const int d = oracle.c.d;
    index.quantizer->reconstruct_n(0, index.nlist, oracle.centroids.data());
    for (size_t list = 0; list < index.nlist; ++list) {
        const size_t size = index.invlists->list_size(list);
        std::vector<float> vectors(size * d);
        for (size_t i = 0; i < size; ++i) {
            float* x = vectors.data() + i * d;
            decodeVector(
                    index,
                    index.invlists->get_codes(list) + i * index.code_size,
                    x);
            for (int c = 0; index.by_residual && c < d; ++c) {
                x[c] = x[c] + oracle.centroids[list * d + c];
            }
        }
        oracle.cpu->invlists->resize(list, size);
        oracle.cpu->invlists->update_entries(
                list,
                0,
                size,
                index.invlists->get_ids(list),
                reinterpret_cast<const uint8_t*>(vectors.data()));
    }
}

/// An index of codes on the CPU, and what a search of it should find. The codes
/// are any bytes below `codes`, not those of vectors.
template <class Coded, class OnGpu, class Config>
class CodedData {
   public:
    /// make: an index that is trained, over a quantizer.
    CodedData(
            const IvfCase& which,
            const std::function<std::unique_ptr<Coded>(faiss::Index*)>& make,
            uint32_t codes = 256)
            : c(which), oracle(which), coded(make(oracle.quantizer.get())) {
        std::mt19937 random(c.seed + 50);
        for (int list = 0; list < c.nlist; ++list) {
            const size_t size = oracle.cpu->invlists->list_size(list);
            std::vector<uint8_t> bytes(size * coded->code_size);
            for (uint8_t& byte : bytes) {
                byte = uint8_t(random() % codes);
            }
            if (size > 0) {
                coded->invlists->add_entries(
                        list,
                        size,
                        oracle.cpu->invlists->get_ids(list),
                        bytes.data());
            }
        }
        coded->ntotal = c.n;
        decode();
    }

    /// After a change of `coded`.
    void decode() {
        decodeLists(*coded, oracle);
    }

    Config config() const {
        Config config;
        config.interleavedLayout = c.interleaved;
        config.indicesOptions = c.indices;
        return config;
    }

    std::unique_ptr<OnGpu> makeIndex(
            faiss::gpu::GpuResourcesProvider* provider =
                    sharedResources()) const {
        return std::make_unique<OnGpu>(provider, coded.get(), config());
    }

    /// Of a new index on the GPU.
    void expectExact(int nprobe, const std::vector<int>& ks) const {
        const auto index = makeIndex();
        index->nprobe = nprobe;
        for (int k : ks) {
            oracle.expectExact(
                    searchOnDevice(*index, oracle.queries, k), nprobe, k);
        }
    }

    const IvfCase c;
    IvfData oracle;
    std::unique_ptr<Coded> coded;
};

/// A copy of other lists changes nothing where memory runs out on the way.
template <class Data>
void testCopyThatFails(const Data& data, const Data& theirs) {
    auto resources = std::make_shared<FailingResources>();
    faiss::gpu::GpuResourcesProviderFromInstance provider(resources);
    const auto index = data.makeIndex(&provider);
    index->nprobe = 3;
    const int k = 7;
    int refused = 0;
    for (bool isDone = false; !isDone; ++refused) {
        ASSERT_LT(refused, 300);
        resources->failAfter(refused);
        try {
            index->copyFrom(theirs.coded.get());
            isDone = true;
        } catch (const faiss::FaissException&) {
            resources->failNever();
            ASSERT_EQ(index->d, data.c.d);
            ASSERT_EQ(index->ntotal, data.coded->ntotal);
            data.oracle.expectExact(
                    searchOnHost(*index, data.oracle.queries, k), 3, k);
        }
    }
    resources->failNever();
    EXPECT_GT(refused, 5);
    EXPECT_EQ(index->d, theirs.c.d);
    EXPECT_EQ(index->nprobe, int(theirs.coded->nprobe));
    theirs.oracle.expectExact(
            searchOnHost(*index, theirs.oracle.queries, k),
            int(theirs.coded->nprobe),
            k);
}

/// Searches with parameters, and of lists that the caller gives.
template <class Data>
void expectParametersAndGivenLists(const Data& data) {
    const IvfCase& c = data.c;
    const auto index = data.makeIndex();
    const int nprobe = 4;
    const int k = 25;
    SearchOutput found;
    found.distances.resize(c.q * k);
    found.labels.resize(c.q * k);
    faiss::SearchParametersIVF params;
    params.nprobe = 3;
    const float* x = data.oracle.queries.data();
    index->search(
            c.q, x, k, found.distances.data(), found.labels.data(), &params);
    data.oracle.expectExact(found, 3, k);
    params.max_codes = 7;
    EXPECT_TRUE(faissThrowsNaming(
            [&] {
                index->search(
                        c.q,
                        x,
                        k,
                        found.distances.data(),
                        found.labels.data(),
                        &params);
            },
            "max_codes",
            "7"));
    std::vector<int64_t> labels(c.q * k);
    index->nprobe = 3;
    index->assign(c.q, x, labels.data(), k);
    EXPECT_EQ(labels, found.labels);

    index->nprobe = nprobe;
    std::vector<std::vector<int64_t>> lists(c.q);
    std::vector<int64_t> assign;
    std::mt19937 random(3);
    for (auto& ofQuery : lists) {
        for (int p = 0; p < nprobe; ++p) {
            // Also none, and the same again.
            ofQuery.push_back(int64_t(random() % (c.nlist + 3)) - 2);
        }
        assign.insert(assign.end(), ofQuery.begin(), ofQuery.end());
    }
    for (bool pairs : {false, true}) {
        index->search_preassigned(
                c.q,
                x,
                k,
                assign.data(),
                nullptr,
                found.distances.data(),
                found.labels.data(),
                pairs);
        for (int64_t i = 0; i < c.q; ++i) {
            EXPECT_TRUE(isCanonical(
                    data.oracle.bestOf(i, lists[i], k, pairs),
                    false,
                    found.distances.data() + i * k,
                    found.labels.data() + i * k,
                    k))
                    << "query " << i;
        }
    }
}

/// A search in a CUDA graph.
template <class Data>
void expectCaptured(const Data& data) {
    const IvfCase& c = data.c;
    // The first search of the index is the one in the graph; its kernels
    // are loaded before.
    const auto other = data.makeIndex();
    other->nprobe = 6;
    searchOnDevice(*other, data.oracle.queries, 12);
    const auto index = data.makeIndex();
    index->nprobe = 6;
    const int k = 12;
    const DeviceBuffer<float> x(data.oracle.queries);
    const DeviceBuffer<float> distances(c.q * k);
    const DeviceBuffer<int64_t> labels(c.q * k);
    CapturedGraph graph(
            sharedResources()->getResources()->getDefaultStream(0), [&] {
                index->search(
                        c.q, x.data(), k, distances.data(), labels.data());
            });
    graph.launch();
    data.oracle.expectExact({distances.download(), labels.download()}, 6, k);
}

} // namespace faiss_bits::test
