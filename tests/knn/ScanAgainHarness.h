#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "kernels/knn/certified/CertifiedLaunch.h"
#include "tests/common/CanonicalOracle.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/common/HostTypes.h"

/// The scan of repeated queries by itself: all rows are searched again.
namespace faiss_bits::test {

struct ScanCase {
    int64_t n = 30011;
    int d = 4;
    uint32_t q = 2;
    int k = 6000;
    int64_t room = 4096;     // of a list, beside k
    uint32_t mostSets = 0;   // of equal vectors; 0: none are made
    uint32_t roomOfKeys = 0; // at least mostSets
    Metric metric = Metric::L2;
    DataType type = DataType::Float32; // of the vectors, which are rounded
    bool isByColumns = false;          // [d, n] in memory
};

/// Integers in -4..4: thousands of distances are equal.
inline std::vector<float> makeIntegers(size_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> integer(-4, 4);
    std::vector<float> values(count);
    for (float& value : values) {
        value = float(integer(random));
    }
    return values;
}

/// Calls run(params, check): it launches a scan with the params, any number of
/// times, and check() after each, which waits for the results and holds them
/// against the oracle.
template <class Run>
void expectScanned(
        const ScanCase& c,
        std::vector<float> vectors,
        const std::vector<float>& queries,
        const Run& run) {
    roundAllTo(c.type, vectors);
    std::vector<float> inMemory = vectors;
    if (c.isByColumns) {
        for (int64_t i = 0; i < c.n * c.d; ++i) {
            inMemory[i % c.d * c.n + i / c.d] = vectors[i];
        }
    }
    const DeviceBuffer<uint8_t> deviceVectors(packAs(c.type, inMemory));
    const DeviceBuffer<float> deviceQueries(queries);
    const DeviceBuffer<uint8_t> flags(2 * c.q, 1);
    DeviceBuffer<float> distances(c.q * c.k);
    DeviceBuffer<int64_t> ids(c.q * c.k);
    const int64_t capacity = c.k + c.room;
    const DeviceBuffer<uint64_t> lists(c.q * capacity);
    const DeviceBuffer<uint32_t> counts(c.q);
    const DeviceBuffer<uint64_t> limits(c.q);

    ScanAgainParams params;
    params.search.vectors = {
            deviceVectors.data(),
            c.type,
            c.isByColumns ? 1 : c.d,
            c.isByColumns ? c.n : 1};
    params.search.n = c.n;
    params.search.d = c.d;
    params.search.numAllowed = c.n;
    params.search.queries = deviceQueries.data();
    params.search.rows = c.q;
    params.search.k = c.k;
    params.search.flags = flags.data();
    params.search.outDistances = distances.data();
    params.search.outIds = ids.data();
    params.lists = lists.data();
    params.counts = counts.data();
    params.limits = limits.data();
    params.slots = c.q;
    params.keep = uint32_t(std::min<int64_t>(c.k, c.n));
    params.capacity = capacity;
    // Memory that holds anything, as scratch does.
    const DeviceBuffer<uint16_t> ofVectors(c.n + 256, 0xA5);
    const DeviceBuffer<unsigned long long> table(kGroupSlots, 0xA5);
    const DeviceBuffer<uint32_t> sizes(kGroupSlots, 0xA5);
    const DeviceBuffer<uint16_t> places(c.mostSets + 1, 0xA5);
    const DeviceBuffer<uint32_t> numbers(1, 0xA5);
    const DeviceBuffer<uint32_t> keys(c.roomOfKeys + 1, 0xA5);
    if (c.mostSets > 0) {
        VectorGroups& groups = params.groups;
        groups.ofVectors = ofVectors.data();
        groups.table = table.data();
        groups.sizes = sizes.data();
        groups.places = places.data();
        groups.count = numbers.data();
        groups.keys = keys.data();
        groups.most = c.mostSets;
        groups.room = c.roomOfKeys;
    }

    std::vector<std::vector<Ranked>> want;
    for (uint32_t row = 0; row < c.q; ++row) {
        want.push_back(canonicalTopK(
                c.metric,
                2,
                queries.data() + row * c.d,
                vectors.data(),
                c.n,
                c.d,
                c.k));
    }
    const auto forget = [&] {
        distances.fillBytes(0xFF);
        ids.fillBytes(0xFF); // waits
    };
    forget();
    run(params, [&] {
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
        const auto outDistances = distances.download();
        const auto outIds = ids.download();
        for (uint32_t row = 0; row < c.q; ++row) {
            ASSERT_TRUE(isCanonical(
                    want[row],
                    isSimilarity(c.metric),
                    outDistances.data() + int64_t(row) * c.k,
                    outIds.data() + int64_t(row) * c.k,
                    c.k))
                    << "row " << row;
        }
        forget();
    });
}

} // namespace faiss_bits::test
