#include <dlfcn.h>

#include <cstring>
#include <string>
#include <type_traits>

#include <faiss/gpu/impl/Distance.cuh>
#include <faiss/gpu/impl/L2Select.cuh>
#include <faiss/gpu/utils/BlockSelectKernel.cuh>
#include <faiss/gpu/utils/Tensor.cuh>

#include <gtest/gtest.h>

#include "tests/dropin/OurTensor.h"

/// Our declaration of FAISS's tensors and functions against FAISS's headers.
/// The two cannot be in one file: they have the same names.
namespace faiss_bits::test {
namespace {

using faiss::gpu::Tensor;
using Matrix = Tensor<float, 2, true>;
using Index = Matrix::IndexType;
using Ids = Tensor<Index, 2, true>;
using Vector = Tensor<float, 1, true>;

template <class T>
void expectSameAsOurs(int dimensions) {
    float data[8] = {};
    Index sizes[2] = {3, 5};
    Index strides[2] = {11, 1};
    T tensor(reinterpret_cast<typename T::DataPtrType>(data), sizes, strides);
    const OurTensor ours = dimensions == 2
            ? readOurMatrix(&tensor, sizeof(Index))
            : readOurVector(&tensor, sizeof(Index));
    EXPECT_EQ(ours.bytes, sizeof(T));
    EXPECT_EQ(ours.data, data);
    for (int i = 0; i < dimensions; ++i) {
        EXPECT_EQ(ours.sizes[i], tensor.getSize(i));
        EXPECT_EQ(ours.strides[i], tensor.getStride(i));
    }
}

TEST(FaissTensor, IsLaidOutAsDeclared) {
    expectSameAsOurs<Matrix>(2);
    expectSameAsOurs<Ids>(2);
    expectSameAsOurs<Vector>(1);
}

template <class Function>
void expectOurs(Function* function, const char* name) {
    Dl_info info;
    ASSERT_NE(dladdr(reinterpret_cast<void*>(function), &info), 0);
    EXPECT_NE(
            std::string(info.dli_fname).find("libfaiss_bits_dropin"),
            std::string::npos)
            << name << " is in " << info.dli_fname;
}

// This program is linked with the drop-in library before FAISS.
TEST(FaissTensor, FunctionsOfTheHeadersAreOurs) {
    using Select = void(Matrix&, Matrix&, Ids&, bool, int, cudaStream_t);
    using Pair = void(Matrix&, Ids&, Matrix&, Ids&, bool, int, cudaStream_t);
    using L2 = void(Matrix&, Vector&, Matrix&, Ids&, int, cudaStream_t);
    expectOurs<Select>(&faiss::gpu::runBlockSelect, "runBlockSelect");
    expectOurs<Pair>(&faiss::gpu::runBlockSelectPair, "runBlockSelectPair");
    expectOurs<L2>(&faiss::gpu::runL2SelectMin, "runL2SelectMin");
    using L2Distance =
            void(faiss::gpu::GpuResources*,
                 cudaStream_t,
                 Matrix&,
                 bool,
                 Vector*,
                 Matrix&,
                 bool,
                 int,
                 Matrix&,
                 Ids&,
                 bool);
    using IPDistance =
            void(faiss::gpu::GpuResources*,
                 cudaStream_t,
                 Matrix&,
                 bool,
                 Matrix&,
                 bool,
                 int,
                 Matrix&,
                 Ids&);
    expectOurs<L2Distance>(&faiss::gpu::runL2Distance, "runL2Distance");
    expectOurs<IPDistance>(&faiss::gpu::runIPDistance, "runIPDistance");
}

} // namespace
} // namespace faiss_bits::test
