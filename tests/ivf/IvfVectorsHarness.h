#pragma once

#include <unordered_map>

#include "tests/ivf/IvfHarness.h"

/// What the tests of the vectors in a GpuIndexBitsIVFFlat share.
namespace faiss_bits::test {

class IvfVectors : public GpuTest {};

inline IvfCase someCase() {
    IvfCase c;
    c.n = 1300;
    c.d = 10;
    c.nlist = 9;
    c.q = 8;
    return c;
}

/// Ids of the selector and their vectors, as the lists have them.
inline std::unordered_map<int64_t, std::vector<float>> vectorsOf(
        const IvfData& data) {
    std::unordered_map<int64_t, std::vector<float>> all;
    for (int64_t l = 0; l < data.c.nlist; ++l) {
        const auto* codes = reinterpret_cast<const float*>(
                data.cpu->invlists->get_codes(l));
        for (size_t i = 0; i < data.cpu->invlists->list_size(l); ++i) {
            all.emplace(
                    data.selectorIdOf(l, int64_t(i)),
                    std::vector<float>(
                            codes + i * data.c.d, codes + (i + 1) * data.c.d));
        }
    }
    return all;
}

inline void expectBatch(
        const IvfData& data,
        const GpuIndexBitsIVFFlat& index,
        const std::vector<int64_t>& keys,
        bool onDevice) {
    const auto all = vectorsOf(data);
    std::vector<float> out(keys.size() * data.c.d, -1.0f);
    if (onDevice) {
        const DeviceBuffer<int64_t> deviceKeys(keys);
        const DeviceBuffer<float> vectors(int64_t(out.size()));
        index.reconstruct_batch(
                int64_t(keys.size()), deviceKeys.data(), vectors.data());
        out = vectors.download();
    } else {
        index.reconstruct_batch(int64_t(keys.size()), keys.data(), out.data());
    }
    for (size_t i = 0; i < keys.size(); ++i) {
        const std::vector<float> want = keys[i] == -1
                ? std::vector<float>(data.c.d, 0.0f)
                : all.at(keys[i]);
        ASSERT_EQ(
                std::vector<float>(
                        out.begin() + i * data.c.d,
                        out.begin() + (i + 1) * data.c.d),
                want)
                << "key " << keys[i] << " of " << data.c;
    }
}

/// The same vectors and ids in the same places.
inline void expectSameLists(
        const IvfData& data,
        const GpuIndexBitsIVFFlat& index) {
    ASSERT_EQ(index.ntotal, data.cpu->ntotal) << data.c;
    for (int64_t l = 0; l < data.c.nlist; ++l) {
        const size_t size = data.cpu->invlists->list_size(l);
        ASSERT_EQ(size_t(index.getListLength(int(l))), size) << data.c;
        const auto codes = index.getListVectorData(int(l));
        ASSERT_EQ(codes.size(), size * data.c.d * sizeof(float));
        ASSERT_EQ(
                std::memcmp(
                        codes.data(),
                        data.cpu->invlists->get_codes(l),
                        codes.size()),
                0)
                << "list " << l << " of " << data.c;
        if (data.c.indices == faiss::gpu::INDICES_IVF) {
            continue;
        }
        const auto ids = index.getListIndices(int(l));
        ASSERT_EQ(ids.size(), size);
        for (size_t i = 0; i < size; ++i) {
            ASSERT_EQ(ids[i], data.cpu->invlists->get_ids(l)[i])
                    << "list " << l << " place " << i << " of " << data.c;
        }
    }
}

inline std::vector<IvfCase> kindsOf(IvfCase c) {
    std::vector<IvfCase> kinds;
    for (bool interleaved : {true, false}) {
        for (auto indices :
             {faiss::gpu::INDICES_64_BIT,
              faiss::gpu::INDICES_32_BIT,
              faiss::gpu::INDICES_CPU,
              faiss::gpu::INDICES_IVF}) {
            c.interleaved = interleaved;
            c.indices = indices;
            kinds.push_back(c);
        }
    }
    return kinds;
}

} // namespace faiss_bits::test
