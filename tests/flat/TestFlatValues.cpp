/// Ties, infinities and repeatability of GpuIndexBitsFlat.

#include "tests/flat/suite/FlatValues.h"
#include "tests/flat/suite/GpuFlatKind.h"

namespace faiss_bits::test {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(GpuFlatValues, FlatValues, GpuFlatKind);

class GpuFlatValues : public GpuTest {};

/// Norms that float16 cannot hold: FAISS's own are infinite here.
TEST_F(GpuFlatValues, SmallLargeFloat16Components) {
    FlatCase c;
    c.storage = DataType::Float16;
    c.n = 500;
    c.d = 16;
    for (int64_t q : {1, 40}) {
        c.q = q;
        FlatData data(c);
        for (float& value : data.vectors) {
            value *= 3000.f;
        }
        for (float& value : data.queries) {
            value *= 3000.f;
        }
        const auto index = data.makeIndex();
        data.expectNearest(searchOnHost(*index, data.queries, 30), 30);

        // The same through copyFrom.
        faiss::IndexFlatL2 cpu(c.d);
        cpu.add(c.n, data.vectors.data());
        index->copyFrom(&cpu);
        data.expectNearest(searchOnHost(*index, data.queries, 30), 30);
    }
}

} // namespace
} // namespace faiss_bits::test
