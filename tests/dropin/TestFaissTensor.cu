#include <dlfcn.h>

#include <cstring>
#include <string>
#include <type_traits>

#include <faiss/gpu/impl/Distance.cuh>
#include <faiss/gpu/impl/GpuScalarQuantizer.cuh>
#include <faiss/gpu/impl/IVFFlatScan.cuh>
#include <faiss/gpu/impl/IVFInterleaved.cuh>
#include <faiss/gpu/impl/L2Select.cuh>
#include <faiss/gpu/utils/BlockSelectKernel.cuh>
#include <faiss/gpu/utils/DeviceVector.cuh>
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

/// Where the lengths of lists are: int in 1.7.3, idx_t later.
using Length = Index;

/// An array of FAISS's, in memory of bytes that show what it does not write.
template <class T>
class ArrayInMemory {
   public:
    static constexpr int kByte = 0xA5;

    ArrayInMemory(
            faiss::gpu::GpuResources* resources,
            const faiss::gpu::AllocInfo& info) {
        std::memset(memory_, kByte, sizeof(memory_));
        array_ = new (memory_) faiss::gpu::DeviceVector<T>(resources, info);
    }
    ~ArrayInMemory() {
        OurArray nothing;
        writeOurArray(array_, nothing);
        array_->~DeviceVector();
    }

    faiss::gpu::DeviceVector<T>& operator*() {
        return *array_;
    }

    OurArray ours() const {
        return std::is_pointer_v<T> ? readOurPointers(array_)
                                    : readOurLengths(array_, sizeof(T));
    }

   private:
    using Array = faiss::gpu::DeviceVector<T>;
    alignas(Array) unsigned char memory_[sizeof(Array)];
    Array* array_ = nullptr;
};

template <class T>
void expectArrayAsOurs() {
    // Never asked for memory, as no device is needed here.
    auto* resources =
            reinterpret_cast<faiss::gpu::GpuResources*>(uintptr_t(0x12340));
    faiss::gpu::AllocInfo info;
    info.device = 7;
    ArrayInMemory<T> array(resources, info);
    EXPECT_EQ(array.ours().bytes, sizeof(*array));
    EXPECT_EQ(array.ours().resources, resources);
    EXPECT_EQ(array.ours().device, 7);
    EXPECT_EQ(array.ours().size, 0u);
    EXPECT_EQ(array.ours().capacity, 0u);
    EXPECT_EQ(array.ours().data, nullptr);
    EXPECT_EQ(
            array.ours().memoryBytes, sizeof(faiss::gpu::GpuMemoryReservation));
    T elements[9] = {};
    OurArray filled;
    filled.data = elements;
    filled.size = 5;
    filled.capacity = 9;
    writeOurArray(&*array, filled);
    EXPECT_EQ((*array).data(), elements);
    EXPECT_EQ((*array).size(), 5u);
    EXPECT_EQ((*array).capacity(), 9u);
}

TEST(FaissTensor, ArraysAreLaidOutAsDeclared) {
    expectArrayAsOurs<void*>();
    expectArrayAsOurs<Length>();
}

// An array begins with it.
TEST(FaissTensor, MemoryIsLaidOutAsDeclared) {
    auto* resources =
            reinterpret_cast<faiss::gpu::GpuResources*>(uintptr_t(0x12340));
    auto* stream = reinterpret_cast<cudaStream_t>(uintptr_t(0x56780));
    float data[3] = {};
    faiss::gpu::GpuMemoryReservation memory(
            resources, 7, stream, data, sizeof(data));
    alignas(std::max_align_t) unsigned char bytes[256] = {};
    static_assert(sizeof(memory) <= sizeof(bytes));
    std::memcpy(bytes, static_cast<const void*>(&memory), sizeof(memory));
    memory.res = nullptr; // it is not given back
    const OurArray ours = readOurPointers(bytes);
    EXPECT_EQ(ours.memoryResources, resources);
    EXPECT_EQ(ours.memoryDevice, 7);
    EXPECT_EQ(ours.memoryStream, stream);
    EXPECT_EQ(ours.data, data);
    EXPECT_EQ(ours.dataBytes, sizeof(data));
}

TEST(FaissTensor, ScalarQuantizersAreLaidOutAsDeclared) {
    using faiss::ScalarQuantizer;
    for (auto type :
         {ScalarQuantizer::QT_8bit,
          ScalarQuantizer::QT_4bit,
          ScalarQuantizer::QT_8bit_uniform,
          ScalarQuantizer::QT_4bit_uniform,
          ScalarQuantizer::QT_fp16,
          ScalarQuantizer::QT_8bit_direct,
          ScalarQuantizer::QT_6bit}) {
        ScalarQuantizer quantizer(9, type);
        quantizer.trained = {1, 2, 3};
        const OurQuantizer ours = readOurQuantizer(&quantizer);
        EXPECT_EQ(ours.d, 9u);
        EXPECT_EQ(ours.codeSize, quantizer.code_size);
        EXPECT_EQ(ours.type, int(type));
        EXPECT_EQ(ours.bits, quantizer.bits);
        EXPECT_EQ(ours.trained, quantizer.trained.data());
        EXPECT_EQ(ours.numTrained, 3u);
    }
    // The ranges on the device are the only member behind it.
    EXPECT_TRUE(areRangesKnownAt(sizeof(ScalarQuantizer)))
            << sizeof(ScalarQuantizer);
    EXPECT_EQ(
            sizeof(faiss::gpu::GpuScalarQuantizer),
            sizeof(ScalarQuantizer) + bytesOfOurRanges(sizeof(Index)));
}

TEST(FaissTensor, NumbersAreThoseOfFaiss) {
    const OurNumbers ours = ourNumbers();
    EXPECT_EQ(ours.l2, int(faiss::METRIC_L2));
    EXPECT_EQ(ours.innerProduct, int(faiss::METRIC_INNER_PRODUCT));
    EXPECT_EQ(ours.indicesCpu, int(faiss::gpu::INDICES_CPU));
    EXPECT_EQ(ours.indicesIvf, int(faiss::gpu::INDICES_IVF));
    EXPECT_EQ(ours.indices32, int(faiss::gpu::INDICES_32_BIT));
    EXPECT_EQ(ours.indices64, int(faiss::gpu::INDICES_64_BIT));
    static_assert(sizeof(faiss::MetricType) == sizeof(int));
    static_assert(sizeof(faiss::gpu::IndicesOptions) == sizeof(int));
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
    expectOurs(&faiss::gpu::runIVFInterleavedScan, "runIVFInterleavedScan");
    expectOurs(&faiss::gpu::runIVFFlatScan, "runIVFFlatScan");
}

} // namespace
} // namespace faiss_bits::test
