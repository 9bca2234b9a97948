#pragma once

#include <cmath>
#include <functional>

#include <faiss/IndexIVFPQ.h>
#include <faiss/IndexScalarQuantizer.h>

#include "tests/common/HalfBits.h"
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

} // namespace faiss_bits::test
