#include "conformance/catalogue/written_cases.h"

namespace assay::conformance {

// Each op with each recipe once or twice, ragged and single, on data that look ordinary and data that do not.
const std::string_view kSmokeLines = R"(
splits_to_offsets splits=1,0,127,128,129
splits_to_offsets splits=4x5000000000 stride=7168
splits_to_offsets splits=0x0
splits_to_offsets_multi splits=3,0,5 outputs=1:i64,7:i32,0:i64:inclusive,128:i32:inclusive
splits_to_offsets_2d first=3,0,5 last=16,7,4
splits_to_offsets_2d itype=i32 first=1,2,3 last=4,5,6

quantize recipe=tensor_current R=33 K=272 seed=1
quantize recipe=tensor_current otype=e5m2 pow2=1 splits=0,65,97,100 K=48 data=specials seed=2
quantize recipe=tensor_delayed R=17 K=64 data=normal seed=3
quantize recipe=tensor_delayed itype=f32 splits=1,0,33 K=40 scales=pow2 data=ties seed=4
quantize recipe=block_1x128 pow2=1 splits=0,128,127 K=272 seed=5
quantize recipe=block_1x128 itype=f32 R=33 K=272 eps=0.01 data=near_underflow seed=6
quantize recipe=block_1x128 itype=f16 otype=e5m2 dbias=1 splits=129,0,1 K=130 data=clustered seed=7
quantize recipe=block_128x128 R=130 K=144 data=specials seed=8
quantize recipe=block_128x128 pow2=1 dbias=1 splits=1,127,0,130 K=160 data=block_scales seed=9
quantize recipe=mxfp8 R=33 K=272 seed=10
quantize recipe=mxfp8 otype=e5m2 scale_layout=swizzled splits=128,0,96,32 K=160 data=block_scales seed=11
quantize recipe=mxfp8 two_dimensional=1 R=64 K=96 data=adversarial_amax seed=12
quantize recipe=nvfp4 R=48 K=80 data=normal seed=13
quantize recipe=nvfp4 scale_layout=swizzled two_dimensional=1 R=32 K=64 seed=14
quantize recipe=nvfp4 hadamard=1 sign_mask=45576 splits=128,0,64 K=48 data=normal seed=15
quantize recipe=nvfp4 itype=f32 stochastic=1 R=32 K=32 seed=16
quantize recipe=nvfp4 four_over_six=mse e4m3_max=256 R=32 K=64 data=normal seed=17
quantize recipe=nvfp4 itype=f16 amax=given splits=16,0,32 K=48 data=block_scales seed=18
# the skip flag, and rows that belong to no group
quantize recipe=block_1x128 noop=1 splits=128,5 K=136 seed=19
quantize recipe=block_1x128 noop=0 splits=128,5 K=136 seed=20
quantize recipe=mxfp8 noop=1 R=33 K=64 seed=21
quantize recipe=block_1x128 splits=5,0,128 extra_rows=70 K=136 seed=22
quantize recipe=nvfp4 splits=16,32 extra_rows=16 K=32 seed=23

dequantize recipe=tensor_current R=9 K=33 data=every_code seed=24
dequantize recipe=block_1x128 direction=columnwise splits=128,0,5 K=136 seed=25
dequantize recipe=block_128x128 otype=e5m2 dtype_d=f32 R=130 K=136 seed=26
dequantize recipe=mxfp8 scale_layout=swizzled dtype_d=f16 splits=32,128 K=64 scales=edge seed=27
dequantize recipe=nvfp4 direction=columnwise R=32 K=48 data=every_code seed=28

swizzle recipe=mxfp8 splits=33,0,128 K=272 seed=29
swizzle recipe=nvfp4 direction=columnwise R=144 K=80 seed=30
unswizzle recipe=mxfp8 direction=columnwise R=130 K=96 seed=31
unswizzle recipe=nvfp4 splits=16,0,144 K=80 seed=32

delayed_update tensors=5 length=16 data=sparse seed=33
delayed_update algorithm=most_recent bulk=0 otype=e5m2 margin=2 tensors=17 length=4 data=every_special seed=34

grouped_dbias splits=0,1,127,128,129 K=40 seed=35
grouped_dbias itype=f32 accumulate=1 splits=70,0,200 K=24 data=adversarial_dbias seed=36

grouped_gemm kind=bf16 splits=17,0,33,7 N=24 K=72 seed=37
grouped_gemm kind=bf16 layout=NN dtype_d=f32 splits=1,31,8 N=40 K=48 data=clustered seed=38
grouped_gemm kind=bf16 layout=NT dtype_d=f32 beta=1 splits=33,0,20 N=24 K=40 seed=39
grouped_gemm kind=f16 dtype_d=f16 bias=1 splits=5,0,17 N=32 K=64 data=normal seed=40
grouped_gemm kind=f16 layout=NT splits=40,0 N=16 K=24 data=specials seed=41
grouped_gemm kind=tensor splits=17,0,33 N=24 K=288 data=clustered seed=42
grouped_gemm kind=tensor layout=NN split_accumulator=1 dy_type=e5m2 dtype_d=f32 splits=9,0,33 N=160 K=24 seed=43
grouped_gemm kind=tensor layout=NT split_accumulator=1 dy_type=e5m2 dtype_d=f32 beta=1 splits=130,0,9 N=16 K=32 seed=44
grouped_gemm kind=block dtype_d=f32 splits=5,0,33 N=136 K=272 data=block_scales seed=45
grouped_gemm kind=block layout=NN dy_type=e5m2 splits=17,0,5 N=144 K=136 seed=46
grouped_gemm kind=block layout=NT dtype_d=f32 beta=1 splits=129,0,40 N=24 K=40 seed=47
grouped_gemm kind=block weight_block=1x128 alpha=0.5 splits=9,20 N=24 K=272 seed=48
grouped_gemm kind=mxfp8 splits=17,0,33 N=32 K=96 seed=49
grouped_gemm kind=mxfp8 layout=NN dtype_d=f32 splits=17,0,33 N=64 K=32 data=clustered seed=50
grouped_gemm kind=mxfp8 layout=NT dtype_d=f32 alpha=1,2 beta=0,1 splits=64,32 N=32 K=32 seed=51
grouped_gemm kind=nvfp4 splits=16,0,32 N=32 K=64 seed=52
grouped_gemm kind=nvfp4 layout=NT dtype_d=f32 splits=32,0,64 N=16 K=32 seed=53
grouped_gemm kind=bf16 dtype_d=f32 splits=9,0,17 N=24 K=64 data=integers seed=54
grouped_gemm kind=block dtype_d=f32 splits=9,0,17 N=24 K=144 data=integers seed=55
# nothing to do, but for zeros where gradients go
grouped_gemm kind=bf16 layout=NT dtype_d=f32 splits=4x0 N=8 K=16 seed=56
grouped_gemm kind=block layout=NT dtype_d=f32 beta=1 splits=3x0 N=8 K=16 seed=57
grouped_gemm kind=bf16 splits=4x0 N=8 K=16 seed=58

linear_forward recipe=none bias=1 splits=17,0,20 N=24 K=40 data=normal seed=59
linear_dgrad recipe=none itype=f16 splits=17,0,20 N=24 K=40 seed=60
linear_wgrad recipe=none bias=1 accumulate=1 splits=17,0,20 N=24 K=40 seed=61
linear_forward recipe=tensor_current splits=17,0,20 N=24 K=40 seed=62
linear_dgrad recipe=tensor_current grad_otype=e5m2 splits=17,0,20 N=24 K=40 seed=63
linear_wgrad recipe=tensor_delayed grad_otype=e5m2 deferred=1 splits=17,0,20 N=24 K=40 seed=64
linear_forward recipe=block bias=1 splits=17,0,20 N=136 K=144 data=normal seed=65
linear_forward recipe=block noop=1 splits=17,0,20 N=24 K=144 seed=66
linear_dgrad recipe=block bias=1 splits=17,0,20 N=136 K=144 seed=67
linear_wgrad recipe=block accumulate=1 splits=128,0,20 N=24 K=40 seed=68
linear_forward recipe=mxfp8 splits=32,0,64 N=32 K=64 seed=69
linear_wgrad recipe=mxfp8 splits=32,0,64 N=32 K=64 seed=70
linear_forward recipe=nvfp4 splits=32,0,64 N=32 K=64 seed=71
linear_dgrad recipe=nvfp4 splits=32,0,64 N=32 K=64 seed=72
linear_wgrad recipe=nvfp4 sign_mask=45576 splits=32,0,64 N=32 K=64 seed=73

# special values, the edges of the number range and options beside one another
quantize recipe=tensor_delayed outputs=all dbias=1 splits=5,0,33 K=72 data=every_special seed=81
quantize recipe=mxfp8 dbias=1 splits=33,0,129 K=79 data=every_special seed=82
quantize recipe=block_128x128 itype=f16 otype=e5m2 R=129 K=257 data=full_exponent seed=83
dequantize recipe=block_128x128 direction=columnwise dtype_d=f32 splits=1,0,129 K=130 scales=specials data=every_special seed=84
grouped_gemm kind=bf16 bias=1 alpha=0.5 beta=1 splits=17,0,9 N=24 K=136 data=every_special seed=85
grouped_gemm kind=tensor scales=edge splits=8x9 N=32 K=160 data=full_exponent seed=86
grouped_gemm kind=block dtype_d=f32 splits=17,0,9 N=136 K=272 data=every_special seed=87
grouped_gemm kind=mxfp8 dtype_d=f32 splits=17,0,33 N=32 K=160 scales=specials data=full_exponent seed=88
linear_forward recipe=block noop=0 bias=1 splits=17,0,20 N=24 K=136 data=normal seed=89
linear_wgrad recipe=mxfp8 accumulate=1 bias=1 splits=32,0,64 N=32 K=32 data=normal seed=90
linear_dgrad recipe=tensor_current bias=1 pow2=1 eps=0.5 splits=17,0,20 N=24 K=40 data=normal seed=91
grouped_dbias splits=17,0,130 K=40 data=adversarial_infinities seed=92
# what only recorded cases of smoke would find otherwise
quantize recipe=tensor_current itype=f32 otype=e5m2 R=33 K=80 data=every_special seed=411
quantize recipe=tensor_current pow2=1 eps=0.0078125 splits=5,0,33 K=72 data=adversarial_eps seed=412
quantize recipe=tensor_current otype=e5m2 pow2=1 dbias=1 outputs=all splits=33,5,0 K=80 data=normal seed=413
quantize recipe=block_1x128 itype=f32 otype=e5m2 R=33 K=144 data=near_underflow seed=414
quantize recipe=mxfp8 itype=f32 R=33 K=80 data=subnormals seed=429
quantize recipe=block_128x128 itype=f16 R=130 K=193 data=ties seed=415
quantize recipe=nvfp4 two_dimensional=1 four_over_six=mse e4m3_max=256 splits=16,0,34 K=80 data=normal seed=416
quantize recipe=nvfp4 itype=f32 amax=apart splits=16,0,34 K=48 seed=417
dequantize recipe=block_1x128 direction=columnwise dtype_d=f16 splits=5,0,129 K=136 seed=418
dequantize recipe=mxfp8 splits=5,0,129 K=136 scales=specials data=every_code seed=419
dequantize recipe=tensor_delayed dtype_d=f16 R=33 K=80 data=near_underflow scales=edge seed=420
swizzle recipe=mxfp8 splits=129,0,100 K=256 seed=421
splits_to_offsets_multi itype=i32 splits=3,0,5 outputs=1:i32:inclusive,24:i64
delayed_update margin=-3 tensors=17 length=8 data=adversarial_amax seed=422
grouped_gemm kind=block layout=NN dy_type=e5m2 dtype_d=f32 splits=5,0,2 N=24 K=9 seed=423
grouped_gemm kind=f16 layout=NT splits=17,0,9 N=24 K=40 data=full_exponent seed=424
grouped_gemm kind=mxfp8 scale_layout=compact dtype_d=f32 splits=5,0,33 N=32 K=32 data=every_code seed=425
grouped_gemm kind=bf16 beta=1 bias=1 splits=9,0,20 N=24 K=40 data=subnormals addends=every_special seed=426
linear_dgrad recipe=none itype=f16 splits=17,0,9 N=24 K=40 data=normal seed=427
quantize recipe=block_1x128 splits=9,0,5 K=40 seed=428 replay=4:data,pieces

# one call captured and replayed on other data, splits and flags
quantize recipe=block_1x128 noop=0 splits=128,5,0 K=136 seed=74 replay=4:data,splits,noop
grouped_gemm kind=bf16 dtype_d=f32 splits=17,0,33,7 N=24 K=72 seed=75 replay=3:data,splits
# several calls: two layers, forward and backward in graphs of their own; all layouts in one graph; the skip flag
scenario recipe=none steps=forward/dgrad,wgrad modules=2 order=interleaved bias=1 splits=5,0,7 N=8 K=16 seed=401 replay=4:data,splits
scenario recipe=block steps=TN,NN,NT workspace=shared splits=9,0,17 N=24 K=40 seed=402 replay=4:data,splits,scales
scenario recipe=tensor_delayed steps=weights,forward noop=0 splits=5,0,9 N=8 K=16 seed=403 replay=6:data,noop
)";

// What covering leaves to chance: cases that exist because of one rule or one known fault.
const std::string_view kStandardLines = R"(
# every rounding of every recipe: midpoints, thresholds of the scale, eps
quantize recipe=block_1x128 pow2=1 R=128 K=512 data=adversarial_midpoints seed=101
quantize recipe=block_1x128 itype=f32 R=64 K=512 data=adversarial_midpoints seed=102
quantize recipe=block_1x128 itype=f16 otype=e5m2 R=64 K=512 data=adversarial_midpoints seed=103
quantize recipe=block_128x128 pow2=1 itype=f32 R=256 K=256 data=adversarial_midpoints seed=104
quantize recipe=tensor_current R=64 K=512 data=adversarial_midpoints seed=105
quantize recipe=tensor_current otype=e5m2 itype=f32 R=64 K=512 data=adversarial_midpoints seed=106
quantize recipe=mxfp8 R=128 K=512 data=adversarial_midpoints seed=107
quantize recipe=mxfp8 otype=e5m2 itype=f32 R=128 K=256 data=adversarial_midpoints seed=108
quantize recipe=nvfp4 R=64 K=512 data=adversarial_midpoints seed=109
quantize recipe=nvfp4 itype=f32 R=64 K=512 data=ties seed=110
quantize recipe=nvfp4 itype=f32 four_over_six=mae R=64 K=256 data=ties seed=111
quantize recipe=nvfp4 itype=f32 four_over_six=mae e4m3_max=256 R=64 K=128 data=adversarial_four_over_six seed=134
quantize recipe=nvfp4 four_over_six=mse R=32 K=128 data=adversarial_four_over_six seed=135
quantize recipe=nvfp4 itype=f32 two_dimensional=1 four_over_six=mae R=64 K=128 data=adversarial_four_over_six seed=136
quantize recipe=nvfp4 itype=f32 two_dimensional=1 four_over_six=mse e4m3_max=256 splits=32,0,48 K=128 data=adversarial_four_over_six seed=137
quantize recipe=block_1x128 pow2=1 R=128 K=1024 data=adversarial_amax seed=112
quantize recipe=block_1x128 pow2=1 itype=f32 R=128 K=1024 data=adversarial_amax seed=113
quantize recipe=block_1x128 itype=f32 otype=e5m2 R=128 K=1024 data=adversarial_amax seed=114
quantize recipe=block_1x128 pow2=1 otype=e5m2 itype=f16 R=128 K=512 data=adversarial_amax seed=115
quantize recipe=block_128x128 pow2=1 itype=f32 R=256 K=512 data=adversarial_amax seed=116
quantize recipe=block_128x128 R=256 K=512 data=adversarial_amax seed=117
quantize recipe=mxfp8 itype=f32 R=128 K=512 data=adversarial_amax seed=118
quantize recipe=mxfp8 itype=f32 otype=e5m2 R=128 K=512 data=adversarial_amax seed=119
quantize recipe=mxfp8 itype=f16 R=128 K=256 data=adversarial_amax seed=120
quantize recipe=tensor_current pow2=1 itype=f32 R=64 K=256 data=adversarial_amax seed=120
quantize recipe=tensor_current pow2=1 itype=f32 R=64 K=256 data=adversarial_amax seed=121
quantize recipe=tensor_current pow2=1 itype=f32 R=64 K=256 data=adversarial_amax seed=122
quantize recipe=tensor_current itype=f32 otype=e5m2 R=64 K=256 data=adversarial_amax seed=123
quantize recipe=nvfp4 itype=f32 R=64 K=256 data=adversarial_amax seed=124
quantize recipe=block_1x128 eps=0.0078125 R=128 K=512 data=adversarial_eps seed=125
quantize recipe=block_1x128 eps=0.0078125 itype=f32 pow2=1 R=128 K=512 data=adversarial_eps seed=126
quantize recipe=block_1x128 eps=0.01 itype=f32 dbias=1 splits=128,0,256 K=512 data=adversarial_eps seed=127
quantize recipe=block_128x128 eps=0.0078125 itype=f16 R=256 K=512 data=adversarial_eps seed=128
quantize recipe=block_128x128 eps=0.0078125 pow2=1 dbias=1 splits=128,128,0 K=512 data=adversarial_eps seed=129
quantize recipe=tensor_current eps=0.0078125 itype=f32 R=32 K=256 data=adversarial_eps seed=130
quantize recipe=tensor_current eps=0.0078125 itype=f32 R=32 K=256 data=adversarial_eps seed=131
quantize recipe=tensor_current eps=0.0078125 R=32 K=256 data=adversarial_eps seed=132
quantize recipe=tensor_current eps=0.0078125 pow2=1 itype=f16 R=32 K=256 data=adversarial_eps seed=133
quantize recipe=block_1x128 eps=0.0078125 R=128 K=256 data=zeros seed=134
quantize recipe=block_1x128 R=128 K=256 data=zeros seed=135

# the order of column sums: f32 keeps every bit of it
quantize recipe=block_1x128 itype=f32 dbias=1 splits=128,0,256,128 K=272 data=adversarial_dbias seed=140
quantize recipe=block_128x128 itype=f32 dbias=1 splits=384,128 K=144 data=adversarial_dbias seed=141
quantize recipe=mxfp8 itype=f32 dbias=1 splits=384,0,128 K=96 data=adversarial_dbias seed=142
quantize recipe=nvfp4 itype=f32 dbias=1 splits=256,16 K=96 data=adversarial_dbias seed=143
quantize recipe=tensor_current itype=f32 dbias=1 splits=300,0,65 K=40 data=adversarial_dbias seed=144
quantize recipe=block_1x128 itype=f32 dbias=1 splits=1,63,64,65,127,129 K=48 data=adversarial_dbias seed=145
quantize recipe=block_1x128 itype=f32 dbias=1 direction=columnwise splits=128,70 K=48 data=adversarial_dbias seed=146
quantize recipe=block_1x128 dbias=1 splits=4x0 K=48 seed=147

# all 65536 inputs of the 16-bit types
quantize recipe=block_1x128 R=128 K=512 data=every_code seed=150
quantize recipe=block_1x128 itype=f16 otype=e5m2 pow2=1 R=128 K=512 data=every_code seed=151
quantize recipe=mxfp8 R=128 K=512 data=every_code seed=152
quantize recipe=mxfp8 itype=f16 R=128 K=512 data=every_code seed=153
quantize recipe=nvfp4 R=128 K=512 data=every_code seed=154
quantize recipe=tensor_delayed R=128 K=512 data=every_code scales=ones seed=155
quantize recipe=tensor_delayed itype=f16 otype=e5m2 R=128 K=512 data=every_code scales=ones seed=156
quantize recipe=tensor_delayed itype=f32 R=128 K=1024 data=every_code scales=ones seed=157
quantize recipe=tensor_delayed itype=f32 splits=4x32 K=256 data=full_exponent scales=edge seed=158

# an amax that no such data have, NaN among them: its scale is the largest finite number, as that of the smallest amax is
quantize recipe=nvfp4 amax=misfit splits=16,32,16,16,32,16 K=64 seed=174
quantize recipe=nvfp4 amax=misfit hadamard=1 splits=16,32,16,16,32,16 K=64 seed=180
quantize recipe=nvfp4 amax=misfit two_dimensional=1 itype=f32 splits=16,32,16,16,32,16 K=64 seed=186
quantize recipe=nvfp4 amax=misfit four_over_six=mse outputs=all splits=16,32,16,16,32,16 K=64 seed=192

# zeros of both signs, where kernels differ
quantize recipe=mxfp8 zero_sign=free R=64 K=128 data=specials seed=160
quantize recipe=tensor_current zero_sign=free splits=33,65 K=64 data=nans seed=161
quantize recipe=block_1x128 zero_sign=positive R=64 K=256 data=specials seed=162

# skip flags that are not exactly 1
quantize recipe=block_128x128 noop=1 dbias=1 splits=128,128 K=128 seed=165
quantize recipe=block_1x128 noop=2 splits=128,128 K=128 seed=166
quantize recipe=tensor_current noop=0.5 R=64 K=64 seed=167
quantize recipe=tensor_current noop=1 splits=33,65 K=64 seed=168
quantize recipe=nvfp4 noop=1 R=64 K=64 scale_layout=swizzled seed=169
quantize recipe=mxfp8 noop=1 dbias=1 splits=128,128 K=64 seed=170
quantize recipe=tensor_delayed noop=-1 R=64 K=64 seed=171

# splits
quantize recipe=block_1x128 splits=256x0 K=128 seed=175
quantize recipe=block_128x128 splits=0x0 K=128 seed=176
quantize recipe=block_128x128 splits=one(16,300,15) K=144 seed=177
quantize recipe=block_1x128 splits=256x3 K=64 seed=178
quantize recipe=mxfp8 splits=zipf(64,2048,3) K=64 seed=179
quantize recipe=tensor_current splits=zipf(64,2048,4) K=64 seed=180
quantize recipe=block_128x128 splits=zipf(32,4096,5) K=96 seed=181
quantize recipe=block_1x128 splits=128,256,384,512 K=256 pow2=1 seed=182
quantize recipe=block_128x128 splits=256,128,512,384,1024 K=128 pow2=1 seed=183
splits_to_offsets splits=1
splits_to_offsets splits=1,2,3,4 stride=7
splits_to_offsets splits=zipf(255,65536,1) stride=128
splits_to_offsets splits=zipf(256,65536,2) stride=7168
splits_to_offsets splits=zipf(257,65536,3)
splits_to_offsets splits=zipf(1024,1000000,4) stride=7168
splits_to_offsets splits=513x3 stride=4611686018427387
splits_to_offsets splits=5,66x0,7,257x0,9 stride=7
splits_to_offsets_multi splits=5,66x0,7,257x0,9 outputs=1:i64,24:i32:inclusive
splits_to_offsets splits=one(300,2147483648,299)
splits_to_offsets_multi itype=i32 splits=zipf(257,65536,5) outputs=1:i32,128:i64,7168:i64:inclusive,0:i32
splits_to_offsets_multi splits=zipf(1024,65536,6) outputs=1:i64,2:i64,3:i64,4:i64,5:i64,6:i64,7:i64,8:i32,9:i32:inclusive
splits_to_offsets_multi splits=0x0 outputs=1:i64,1:i64:inclusive
splits_to_offsets_multi itype=i32 splits=2000000000,0,2000000000,7 outputs=1:i64,7168:i64:inclusive,1:i64:inclusive
splits_to_offsets_multi itype=i32 splits=17x134217728 outputs=1:i64,128:i64
splits_to_offsets_multi itype=i32 splits=3x0 outputs=1:i64,1:i32:inclusive
splits_to_offsets splits=17x134217728 stride=4096
splits_to_offsets splits=65x33554432
splits_to_offsets splits=1025x3 stride=7
splits_to_offsets splits=4096x17
splits_to_offsets splits=4097x17
splits_to_offsets splits=512x3
splits_to_offsets splits=2049x2
splits_to_offsets_multi splits=65x3 outputs=1:i32,7168:i64
splits_to_offsets_multi itype=i32 splits=1025x5 outputs=1:i32,7168:i64
splits_to_offsets_2d itype=i32 first=65x3 last=65x5
splits_to_offsets_2d first=17x65536 last=17x4096
splits_to_offsets_2d first=1025x3 last=1025x5
splits_to_offsets_2d first=zipf(255,4096,1) last=255x7168
splits_to_offsets_2d itype=i32 first=zipf(257,4096,2) last=257x16
splits_to_offsets_2d first=3x100000 last=3x100000

# where the alignment, the promotion and the last rounding of a product cut
grouped_gemm kind=tensor dtype_d=f32 splits=33,20 N=40 K=288 data=adversarial_alignment seed=201
grouped_gemm kind=tensor layout=NT dtype_d=f32 splits=96,40 N=24 K=40 data=adversarial_alignment seed=202
grouped_gemm kind=block dtype_d=f32 splits=33,20 N=136 K=288 data=adversarial_alignment seed=203
grouped_gemm kind=bf16 dtype_d=f32 splits=33,20 N=40 K=160 data=adversarial_alignment seed=204
grouped_gemm kind=f16 dtype_d=f32 layout=NN splits=33,20 N=160 K=40 data=adversarial_alignment seed=205
grouped_gemm kind=mxfp8 dtype_d=f32 splits=33,20 N=32 K=160 data=adversarial_alignment seed=206
grouped_gemm kind=nvfp4 dtype_d=f32 splits=33,20 N=32 K=192 data=adversarial_alignment seed=207
grouped_gemm kind=tensor split_accumulator=1 dtype_d=f32 splits=33,20 N=40 K=640 data=adversarial_promotion seed=208
grouped_gemm kind=tensor split_accumulator=1 layout=NN dy_type=e5m2 dtype_d=f32 splits=33,20 N=640 K=24 data=adversarial_promotion seed=209
grouped_gemm kind=tensor split_accumulator=1 layout=NT dtype_d=f32 splits=520,300 N=24 K=24 data=adversarial_promotion seed=210
grouped_gemm kind=block dtype_d=f32 splits=33,20 N=40 K=640 data=adversarial_promotion seed=211
grouped_gemm kind=block weight_block=1x128 dtype_d=f32 splits=33,20 N=40 K=640 data=adversarial_promotion seed=212
grouped_gemm kind=bf16 splits=40,24 N=64 K=64 data=adversarial_output_ties seed=213
grouped_gemm kind=bf16 layout=NN splits=40,24 N=64 K=64 data=adversarial_output_ties seed=214
grouped_gemm kind=bf16 layout=NT splits=40,64 N=40 K=32 data=adversarial_output_ties seed=215
grouped_gemm kind=f16 dtype_d=f16 splits=40,24 N=64 K=64 data=adversarial_output_ties seed=216
grouped_gemm kind=tensor splits=40,24 N=64 K=64 data=adversarial_output_ties seed=217
grouped_gemm kind=tensor dtype_d=f16 splits=40,24 N=64 K=64 data=adversarial_output_ties seed=218
grouped_gemm kind=block splits=40,24 N=64 K=144 data=adversarial_output_ties seed=219
grouped_gemm kind=mxfp8 splits=40,24 N=64 K=64 data=adversarial_output_ties seed=220
# scales of any size, each block its own
grouped_gemm kind=block dtype_d=f32 scales=edge splits=9,0,5 N=136 K=272 seed=225
grouped_gemm kind=block weight_block=1x128 dtype_d=f32 scales=edge splits=33,0,20 N=24 K=272 seed=226
grouped_gemm kind=tensor dtype_d=f32 scales=edge splits=8x9 N=24 K=64 seed=227
grouped_gemm kind=mxfp8 dtype_d=f32 scales=edge splits=33,0,20 N=64 K=160 seed=228
grouped_gemm kind=nvfp4 dtype_d=f32 scales=edge splits=33,0,20 N=64 K=160 seed=229
grouped_gemm kind=block dtype_d=f32 scales=pow2 splits=9,0,5 N=136 K=272 seed=230
grouped_gemm kind=block dtype_d=f32 splits=5,0,13,8 N=264 K=520 data=block_scales seed=231
grouped_gemm kind=block splits=5,0,13,8 N=264 K=520 data=block_scales seed=232
grouped_gemm kind=block layout=NT dtype_d=f32 splits=300,0,140 N=40 K=24 data=block_scales seed=233
# one alpha and beta a group, alpha 0 with infinities, beta with NaN in C where it is 0
grouped_gemm kind=bf16 arch=sm100 alpha=1,0.5,-2 beta=0,1,0.25 dtype_d=f32 splits=9,0,17 N=24 K=48 seed=235
grouped_gemm kind=nvfp4 alpha=1,0.5,-2 beta=0,1,0.25 dtype_d=f32 splits=16,0,17 N=32 K=48 seed=236
grouped_gemm kind=bf16 alpha=0 dtype_d=f32 splits=9,0,17 N=24 K=48 data=specials seed=237
grouped_gemm kind=bf16 alpha=-1.25 dtype_d=f32 splits=9,0,17 N=24 K=48 data=one_hot seed=238
grouped_gemm kind=f16 alpha=-1.25 splits=9,0,17 N=24 K=48 data=one_hot seed=238
grouped_gemm kind=tensor alpha=0 dtype_d=f32 splits=9,0,17 N=32 K=48 data=specials seed=239
grouped_gemm kind=tensor alpha=-1.25 dtype_d=f32 splits=9,0,17 N=32 K=48 data=one_hot seed=239
grouped_gemm kind=block alpha=0 dtype_d=bf16 splits=9,0,17 N=32 K=48 data=specials seed=240
grouped_gemm kind=block alpha=-1.25 dtype_d=f32 splits=9,0,17 N=32 K=48 data=one_hot seed=240
grouped_gemm kind=tensor alpha=-1.5 beta=0.3 splits=9,0,17 N=24 K=48 seed=238
grouped_gemm kind=f16 dtype_d=f16 alpha=3 beta=-0.7 splits=9,0,17 N=24 K=48 seed=239
# other architectures
grouped_gemm kind=bf16 arch=sm80 dtype_d=f32 splits=17,0,9 N=24 K=72 data=clustered seed=240
grouped_gemm kind=f16 arch=sm89 dtype_d=f32 splits=17,0,9 N=24 K=72 data=adversarial_alignment seed=241
grouped_gemm kind=tensor arch=sm89 dtype_d=f32 splits=17,0,9 N=24 K=72 data=adversarial_alignment seed=242
grouped_gemm kind=tensor arch=sm100 layout=NN dtype_d=f32 splits=17,0,9 N=72 K=24 data=clustered seed=243
grouped_gemm kind=tensor arch=sm120 layout=NT dtype_d=f32 splits=17,0,9 N=24 K=72 data=clustered seed=244
grouped_gemm kind=mxfp8 arch=sm120 dtype_d=f32 splits=17,0,9 N=32 K=96 data=clustered seed=245
grouped_gemm kind=nvfp4 arch=sm120 dtype_d=f32 splits=17,0,9 N=32 K=96 seed=246
grouped_gemm kind=bf16 arch=sm120 layout=NT dtype_d=f32 splits=17,0,9 N=24 K=72 data=full_exponent seed=247
# splits
grouped_gemm kind=bf16 dtype_d=f32 splits=zipf(256,512,2) N=8 K=32 seed=250
grouped_gemm kind=bf16 layout=NT dtype_d=f32 splits=zipf(256,512,3) N=8 K=32 seed=251
grouped_gemm kind=tensor splits=256x1 N=16 K=32 seed=252
grouped_gemm kind=block splits=one(16,64,15) N=24 K=136 seed=253
grouped_gemm kind=block splits=one(16,64,0) N=24 K=136 seed=254
grouped_gemm kind=bf16 splits=0x0 N=16 K=16 seed=255
grouped_gemm kind=mxfp8 layout=NT dtype_d=f32 splits=zipf(8,512,4) N=32 K=32 seed=256
grouped_gemm kind=bf16 dtype_d=f32 splits=127,128,129,1 N=16 K=48 seed=257
grouped_gemm kind=bf16 splits=20,0,9 N=8 K=0 beta=1 seed=258
grouped_gemm kind=tensor splits=16,0,32 N=16 K=0 seed=262
grouped_gemm kind=bf16 splits=20,0,9 extra_rows=17 N=24 K=40 seed=259
grouped_gemm kind=block layout=NN splits=20,0,9 extra_rows=130 N=136 K=24 seed=260
grouped_gemm kind=tensor layout=NT dtype_d=f32 splits=20,0,9 extra_rows=17 N=24 K=40 seed=261
# order-free
grouped_gemm kind=bf16 dtype_d=f32 splits=33,0,20,7 N=40 K=400 data=integers seed=265
grouped_gemm kind=bf16 layout=NN splits=33,0,20,7 N=200 K=40 data=integers seed=266
grouped_gemm kind=f16 layout=NT dtype_d=f16 splits=133,0,20,7 N=40 K=40 data=integers seed=267
grouped_gemm kind=tensor layout=NT dtype_d=f32 beta=1 splits=133,0,20,7 N=40 K=40 data=integers scales=pow2 seed=268
grouped_gemm kind=tensor dtype_d=f32 bias=1 splits=33,0,20,7 N=40 K=400 data=integers scales=ones seed=269
grouped_gemm kind=block layout=NN dtype_d=f32 splits=33,0,20,7 N=200 K=136 data=integers seed=270
grouped_gemm kind=block layout=NT dtype_d=f32 beta=1 splits=133,0,20,7 N=40 K=40 data=integers seed=271
grouped_gemm kind=mxfp8 dtype_d=f32 splits=33,0,20,7 N=64 K=224 data=integers seed=272
grouped_dbias splits=0,130,7 K=40 data=integers seed=273

# sparse data, no data, one product an element
quantize recipe=block_1x128 splits=33,0,97 K=160 data=one_hot seed=320
quantize recipe=block_128x128 dbias=1 splits=33,0,97 K=160 data=integers seed=321
quantize recipe=mxfp8 dbias=1 itype=f16 splits=128,64 K=96 data=integers seed=322
grouped_gemm kind=block dtype_d=f32 splits=17,0,9 N=24 K=272 data=sparse seed=323
grouped_gemm kind=block splits=17,0,9 N=24 K=144 data=normal seed=350
grouped_gemm kind=mxfp8 splits=16,0,9 N=32 K=96 data=normal seed=351
grouped_gemm kind=mxfp8 dtype_d=f32 splits=16,0,9 N=32 K=96 data=specials seed=352
grouped_gemm kind=block dtype_d=f32 beta=1 splits=17,0,9 N=24 K=144 addends=negative_zeros seed=353
# a product that cancels under the largest scale of one operand and the smallest of the other
grouped_gemm kind=tensor dtype_d=f32 splits=17,0,9 N=24 K=96 scales=opposed data=adversarial_cancelling seed=354
grouped_gemm kind=block dtype_d=f32 splits=17,0,9 N=24 K=272 scales=opposed data=adversarial_cancelling seed=355
grouped_gemm kind=block weight_block=1x128 splits=17,0,9 N=24 K=272 scales=opposed data=adversarial_cancelling seed=356
grouped_gemm kind=mxfp8 dtype_d=f32 splits=17,0,9 N=32 K=96 scales=opposed data=adversarial_cancelling seed=357
grouped_gemm kind=nvfp4 dtype_d=f32 splits=17,0,9 N=32 K=96 scales=opposed data=adversarial_cancelling seed=358
# C of -0 where a group has no rows; sums that underflow to -0; an alpha whose products lie beside a tie by less than f32 holds
grouped_gemm kind=bf16 layout=NT dtype_d=f32 beta=1 splits=17,0,9,0 N=24 K=40 addends=negative_zeros seed=360
grouped_gemm kind=bf16 layout=NT beta=-1 splits=17,0,9,0 N=24 K=40 addends=negative_zeros seed=361
grouped_gemm kind=block layout=NT dtype_d=f32 beta=1 splits=17,0,9 N=24 K=40 addends=negative_zeros seed=362
grouped_gemm kind=bf16 dtype_d=f16 alpha=1e-7 splits=17,0,9 N=24 K=40 seed=363
grouped_gemm kind=f16 dtype_d=f16 splits=17,0,9 N=24 K=40 data=subnormals seed=364
grouped_gemm kind=tensor dtype_d=f16 alpha=1e-10 splits=17,0,9 N=24 K=48 seed=365
grouped_gemm kind=bf16 alpha=11315883 splits=33,0,20 N=24 K=8 data=integers seed=366
grouped_gemm kind=f16 alpha=11315883 splits=33,0,20 N=24 K=8 data=integers seed=367
# scales of infinity and NaN where groups have no rows
grouped_gemm kind=tensor layout=NT dtype_d=f32 splits=9,0,17,0,5,0,4,0 N=24 K=40 scales=specials seed=368
grouped_gemm kind=tensor layout=NT dtype_d=f32 beta=1 splits=0,0,0,0 N=24 K=40 scales=specials seed=369
grouped_gemm kind=bf16 layout=NT dtype_d=f32 beta=1 splits=17,0,9 N=24 K=40 data=zeros seed=324
grouped_gemm kind=tensor layout=NN splits=17,0,9 N=24 K=40 data=sparse seed=325
dequantize recipe=block_1x128 dtype_d=f32 splits=33,5 K=136 scales=ones data=every_code seed=326

linear_forward recipe=tensor_current otype=e5m2 splits=17,0,20 N=24 K=40 seed=330
linear_forward recipe=none arch=sm80 splits=17,0,20 N=24 K=40 data=clustered seed=331
linear_forward recipe=none arch=sm89 itype=f16 splits=17,0,20 N=24 K=40 data=clustered seed=332
linear_forward recipe=mxfp8 arch=sm120 splits=17,0,20 N=32 K=64 seed=333
linear_dgrad recipe=tensor_current otype=e5m2 splits=17,0,20 N=24 K=40 seed=334
linear_dgrad recipe=none arch=sm80 splits=17,0,20 N=24 K=40 data=clustered seed=335
linear_dgrad recipe=none arch=sm89 splits=17,0,20 N=24 K=40 data=clustered seed=336
linear_dgrad recipe=nvfp4 arch=sm120 splits=32,0,16 N=32 K=64 seed=337
linear_wgrad recipe=tensor_current otype=e5m2 accumulate=1 splits=17,0,20 N=24 K=40 seed=338
linear_wgrad recipe=none itype=f16 dtype_d=f16 accumulate=1 splits=17,0,20 N=24 K=40 seed=339
linear_wgrad recipe=none arch=sm80 splits=17,0,20 N=24 K=40 data=clustered seed=340
linear_wgrad recipe=none arch=sm89 splits=17,0,20 N=24 K=40 data=clustered seed=341
linear_wgrad recipe=mxfp8 arch=sm120 splits=32,0,64 N=32 K=64 seed=342
# a weight gradient overwritten or added to, at once or put off, where some groups have no rows
linear_wgrad recipe=none dtype_d=f32 splits=4x0 N=24 K=40 seed=343
linear_wgrad recipe=none accumulate=1 splits=4x0 N=24 K=40 seed=344
linear_wgrad recipe=block accumulate=1 deferred=1 bias=1 splits=0,130,0,5 N=24 K=40 seed=345
linear_forward recipe=mxfp8 noop=0 splits=17,0,20 N=32 K=64 seed=346
linear_forward recipe=nvfp4 noop=1 splits=17,0,20 N=32 K=64 seed=347
linear_forward recipe=tensor_delayed noop=1 splits=17,0,20 N=24 K=40 seed=348

delayed_update tensors=33 length=1024 seed=280
delayed_update tensors=9 length=1 data=sparse seed=281
delayed_update tensors=9 length=2 bulk=0 data=sparse seed=282
delayed_update tensors=9 length=5 margin=-3 data=near_underflow seed=283
delayed_update tensors=64 length=8 algorithm=most_recent data=full_exponent seed=284
delayed_update tensors=64 length=8 reduced=1 data=sparse seed=285
delayed_update tensors=64 length=8 bulk=0 otype=e5m2 data=adversarial_amax seed=286
delayed_update tensors=16 length=4 reduced=1 algorithm=most_recent data=every_special seed=287

grouped_dbias splits=0,1,63,64,65,127,128,129 itype=f32 K=33 data=adversarial_dbias seed=290
grouped_dbias splits=zipf(64,2048,1) itype=f16 K=40 data=clustered seed=291
grouped_dbias splits=4x0 accumulate=1 K=40 seed=292
grouped_dbias splits=130,7 extra_rows=60 K=40 seed=293
grouped_dbias splits=130,7 itype=f32 K=40 data=every_special seed=294
grouped_dbias splits=130,0,33 itype=f32 K=40 data=adversarial_infinities accumulate=1 seed=295
quantize recipe=block_1x128 noop=nan splits=128,128 K=128 seed=172
delayed_update tensors=17 length=16 margin=-119 data=every_special seed=288
delayed_update tensors=17 length=16 margin=-120 otype=e4m3 scales=specials seed=289
delayed_update tensors=17 length=16 margin=-112 otype=e5m2 data=every_special bulk=0 seed=296
delayed_update tensors=17 length=16 margin=-113 otype=e5m2 seed=297
dequantize recipe=tensor_current dtype_d=bf16 splits=33,0,5,4 K=136 scales=two_roundings data=every_code seed=298
dequantize recipe=block_1x128 dtype_d=f16 splits=33,0,5,4 K=272 scales=two_roundings data=every_code seed=299
quantize recipe=tensor_delayed itype=f32 splits=33,0,5,4 K=136 scales=two_roundings data=integers seed=300

# calls that are wrong on purpose, and the right one after each
quantize recipe=block_1x128 noop=0 splits=5,0,17 dbias=1 K=136 seed=1001 contract=1
quantize recipe=block_128x128 splits=128,5 K=40 seed=1002 contract=1
quantize recipe=tensor_current splits=5,0,17 K=40 seed=1003 contract=1
quantize recipe=tensor_delayed splits=5,0,17 K=40 seed=1004 contract=1
quantize recipe=mxfp8 scale_layout=swizzled splits=32,0,64 K=64 seed=1005 contract=1
quantize recipe=nvfp4 amax=given splits=16,0,32 K=32 seed=1006 contract=1
dequantize recipe=block_1x128 splits=5,0,17 K=136 seed=1007 contract=1
dequantize recipe=nvfp4 splits=16,0,32 K=32 seed=1008 contract=1
swizzle recipe=mxfp8 splits=32,0,64 K=64 seed=1009 contract=1
unswizzle recipe=nvfp4 splits=16,0,32 K=32 seed=1010 contract=1
splits_to_offsets splits=3,0,5 stride=24 contract=1
splits_to_offsets_multi splits=3,0,5 outputs=1:i64,24:i32:inclusive contract=1
splits_to_offsets_2d first=3,0,5 last=8,8,2 contract=1
delayed_update tensors=5 length=4 reduced=1 seed=1011 contract=1
grouped_dbias splits=5,0,17 accumulate=1 K=40 seed=1012 contract=1
grouped_gemm kind=bf16 beta=1 splits=5,0,17 N=24 K=40 seed=1013 contract=1
grouped_gemm kind=block dtype_d=f32 splits=5,0,17 N=24 K=136 seed=1014 contract=1
grouped_gemm kind=tensor layout=NT dtype_d=f32 splits=16,0,32 N=32 K=48 seed=1015 contract=1
linear_forward recipe=block bias=1 noop=0 splits=17,0,20 N=24 K=40 seed=1016 contract=1
linear_dgrad recipe=tensor_current bias=1 splits=17,0,20 N=24 K=40 seed=1017 contract=1
linear_wgrad recipe=none accumulate=1 splits=17,0,20 N=24 K=40 seed=1018 contract=1

# contents of the splits that no call may have, and the right call after each
quantize recipe=block_1x128 splits=5,0,17,9 dbias=1 K=136 seed=2001 fault=negative_split
quantize recipe=block_128x128 splits=128,5,40 K=40 seed=2002 fault=negative_split
quantize recipe=tensor_current splits=5,0,17,9 K=40 seed=2003 fault=negative_split
quantize recipe=tensor_delayed splits=5,0,17,9 extra_rows=3 K=40 seed=2004 fault=negative_split
quantize recipe=mxfp8 scale_layout=swizzled splits=32,0,64,32 K=64 seed=2005 fault=negative_split
quantize recipe=nvfp4 splits=16,0,32,16 K=32 seed=2006 fault=negative_split
quantize recipe=nvfp4 hadamard=1 splits=16,0,32,16 K=32 seed=2007 fault=negative_split
quantize recipe=block_1x128 splits=65x3 K=40 seed=2008 fault=negative_split
quantize recipe=mxfp8 splits=129x4 K=32 seed=2009 fault=negative_split
quantize recipe=tensor_current splits=257x2 K=24 seed=2010 fault=negative_split
dequantize recipe=block_1x128 splits=5,0,17,9 K=136 seed=2011 fault=negative_split
dequantize recipe=tensor_current splits=5,0,17,9 K=40 seed=2012 fault=negative_split
dequantize recipe=block_128x128 splits=128,5,40 K=40 seed=2013 fault=negative_split
dequantize recipe=mxfp8 splits=32,0,64,32 K=64 seed=2014 fault=negative_split
dequantize recipe=nvfp4 splits=16,0,32,16 K=32 seed=2015 fault=negative_split
swizzle recipe=mxfp8 splits=32,0,64,32 K=64 seed=2016 fault=negative_split
unswizzle recipe=nvfp4 splits=16,0,32,16 K=32 seed=2017 fault=negative_split
grouped_dbias splits=5,0,17,9 accumulate=1 K=40 seed=2018 fault=negative_split
grouped_dbias itype=f32 splits=65x3 K=40 seed=2019 fault=negative_split
grouped_gemm kind=bf16 splits=5,0,17,9 N=24 K=40 seed=2020 fault=negative_split
grouped_gemm kind=f16 layout=NN dtype_d=f32 beta=1 splits=5,0,17,9 N=24 K=40 seed=2021 fault=negative_split
grouped_gemm kind=bf16 layout=NT dtype_d=f32 splits=5,0,17,9 extra_rows=3 N=24 K=40 seed=2022 fault=negative_split
grouped_gemm kind=bf16 splits=65x3 N=8 K=16 seed=2023 fault=negative_split
grouped_gemm kind=tensor splits=16,0,32,16 N=32 K=48 seed=2024 fault=negative_split
grouped_gemm kind=tensor layout=NT dtype_d=f32 splits=16,0,32,16 N=32 K=48 seed=2025 fault=negative_split
grouped_gemm kind=block dtype_d=f32 splits=5,0,17,9 N=24 K=136 seed=2026 fault=negative_split
grouped_gemm kind=block layout=NT dtype_d=f32 splits=5,0,17,9 N=24 K=136 seed=2027 fault=negative_split
grouped_gemm kind=mxfp8 splits=32,0,64,32 N=32 K=64 seed=2028 fault=negative_split
grouped_gemm kind=nvfp4 splits=16,0,32,16 N=32 K=64 seed=2029 fault=negative_split
grouped_gemm kind=nvfp4 layout=NT dtype_d=f32 splits=16,0,32,16 N=32 K=64 seed=2030 fault=negative_split
linear_forward recipe=block bias=1 splits=17,0,20,9 N=24 K=40 seed=2031 fault=negative_split
linear_forward recipe=none splits=17,0,20,9 N=24 K=40 seed=2032 fault=negative_split
linear_dgrad recipe=tensor_current bias=1 splits=17,0,20,9 N=24 K=40 seed=2033 fault=negative_split
linear_wgrad recipe=none accumulate=1 splits=17,0,20,9 N=24 K=40 seed=2034 fault=negative_split
linear_wgrad recipe=block splits=17,0,20,9 N=24 K=40 seed=2035 fault=negative_split
quantize recipe=block_1x128 splits=5,0,17,9 dbias=1 K=136 seed=2036 fault=excess_rows
quantize recipe=block_128x128 splits=128,5,40 K=40 seed=2037 fault=excess_rows
quantize recipe=tensor_current splits=5,0,17,9 K=40 seed=2038 fault=excess_rows
quantize recipe=tensor_delayed splits=5,0,17,9 extra_rows=3 K=40 seed=2039 fault=excess_rows
quantize recipe=mxfp8 scale_layout=swizzled splits=32,0,64,32 K=64 seed=2040 fault=excess_rows
quantize recipe=nvfp4 splits=16,0,32,16 K=32 seed=2041 fault=excess_rows
quantize recipe=nvfp4 hadamard=1 splits=16,0,32,16 K=32 seed=2042 fault=excess_rows
quantize recipe=block_1x128 splits=65x3 K=40 seed=2043 fault=excess_rows
quantize recipe=mxfp8 splits=129x4 K=32 seed=2044 fault=excess_rows
quantize recipe=tensor_current splits=257x2 K=24 seed=2045 fault=excess_rows
dequantize recipe=block_1x128 splits=5,0,17,9 K=136 seed=2046 fault=excess_rows
dequantize recipe=tensor_current splits=5,0,17,9 K=40 seed=2047 fault=excess_rows
dequantize recipe=block_128x128 splits=128,5,40 K=40 seed=2048 fault=excess_rows
dequantize recipe=mxfp8 splits=32,0,64,32 K=64 seed=2049 fault=excess_rows
dequantize recipe=nvfp4 splits=16,0,32,16 K=32 seed=2050 fault=excess_rows
swizzle recipe=mxfp8 splits=32,0,64,32 K=64 seed=2051 fault=excess_rows
unswizzle recipe=nvfp4 splits=16,0,32,16 K=32 seed=2052 fault=excess_rows
grouped_dbias splits=5,0,17,9 accumulate=1 K=40 seed=2053 fault=excess_rows
grouped_dbias itype=f32 splits=65x3 K=40 seed=2054 fault=excess_rows
grouped_gemm kind=bf16 splits=5,0,17,9 N=24 K=40 seed=2055 fault=excess_rows
grouped_gemm kind=f16 layout=NN dtype_d=f32 beta=1 splits=5,0,17,9 N=24 K=40 seed=2056 fault=excess_rows
grouped_gemm kind=bf16 layout=NT dtype_d=f32 splits=5,0,17,9 extra_rows=3 N=24 K=40 seed=2057 fault=excess_rows
grouped_gemm kind=bf16 splits=65x3 N=8 K=16 seed=2058 fault=excess_rows
grouped_gemm kind=tensor splits=16,0,32,16 N=32 K=48 seed=2059 fault=excess_rows
grouped_gemm kind=tensor layout=NT dtype_d=f32 splits=16,0,32,16 N=32 K=48 seed=2060 fault=excess_rows
grouped_gemm kind=block dtype_d=f32 splits=5,0,17,9 N=24 K=136 seed=2061 fault=excess_rows
grouped_gemm kind=block layout=NT dtype_d=f32 splits=5,0,17,9 N=24 K=136 seed=2062 fault=excess_rows
grouped_gemm kind=mxfp8 splits=32,0,64,32 N=32 K=64 seed=2063 fault=excess_rows
grouped_gemm kind=nvfp4 splits=16,0,32,16 N=32 K=64 seed=2064 fault=excess_rows
grouped_gemm kind=nvfp4 layout=NT dtype_d=f32 splits=16,0,32,16 N=32 K=64 seed=2065 fault=excess_rows
linear_forward recipe=block bias=1 splits=17,0,20,9 N=24 K=40 seed=2066 fault=excess_rows
linear_forward recipe=none splits=17,0,20,9 N=24 K=40 seed=2067 fault=excess_rows
linear_dgrad recipe=tensor_current bias=1 splits=17,0,20,9 N=24 K=40 seed=2068 fault=excess_rows
linear_wgrad recipe=none accumulate=1 splits=17,0,20,9 N=24 K=40 seed=2069 fault=excess_rows
linear_wgrad recipe=block splits=17,0,20,9 N=24 K=40 seed=2070 fault=excess_rows
splits_to_offsets splits=3,0,5,9 stride=24 fault=negative_split
splits_to_offsets splits=65x3 stride=7 fault=negative_split
splits_to_offsets_multi splits=3,0,5,9 outputs=1:i64,24:i32:inclusive fault=negative_split
splits_to_offsets_multi itype=i32 splits=257x3 outputs=7168:i32,1:i64 fault=negative_split
splits_to_offsets_2d first=3,0,5,9 last=8,8,2,1 fault=negative_split
splits_to_offsets_2d itype=i32 first=65x3 last=65x5 fault=negative_split
splits_to_offsets splits=3,0,5,9 stride=24 fault=sum_overflow
splits_to_offsets splits=65x3 stride=7 fault=sum_overflow
splits_to_offsets_multi splits=3,0,5,9 outputs=1:i64,24:i32:inclusive fault=sum_overflow
splits_to_offsets_multi itype=i32 splits=257x3 outputs=7168:i32,1:i64 fault=sum_overflow
splits_to_offsets_2d first=3,0,5,9 last=8,8,2,1 fault=sum_overflow
splits_to_offsets_2d itype=i32 first=65x3 last=65x5 fault=sum_overflow
quantize recipe=nvfp4 splits=16,0,32,16 K=32 seed=2071 fault=unaligned_rows
quantize recipe=nvfp4 direction=columnwise splits=66x2 K=32 seed=2072 fault=unaligned_rows
dequantize recipe=nvfp4 direction=columnwise splits=16,0,32,16 K=32 seed=2073 fault=unaligned_rows
grouped_gemm kind=nvfp4 layout=NT dtype_d=f32 splits=16,0,32,16 N=32 K=64 seed=2074 fault=unaligned_rows

# rows beyond the splits that are finite and large: what NaN hides in a maximum or a comparison
quantize recipe=block_1x128 splits=5,0,17 extra_rows=140 beyond=large dbias=1 K=136 seed=1021
quantize recipe=block_128x128 splits=128,5 extra_rows=30 beyond=large K=40 seed=1022
quantize recipe=tensor_current splits=5,0,17 extra_rows=33 beyond=large K=40 seed=1023
quantize recipe=tensor_delayed splits=5,0,17 extra_rows=33 beyond=large K=40 seed=1024
quantize recipe=mxfp8 splits=32,5 extra_rows=40 beyond=large K=64 seed=1025
quantize recipe=nvfp4 splits=16,0,34 extra_rows=18 beyond=large K=32 seed=1026
dequantize recipe=block_1x128 splits=5,0,17 extra_rows=20 beyond=large K=136 seed=1027
grouped_dbias splits=5,0,17 extra_rows=40 beyond=large K=40 seed=1028
grouped_gemm kind=bf16 splits=5,0,17 extra_rows=40 beyond=large N=24 K=40 seed=1029
grouped_gemm kind=bf16 layout=NT dtype_d=f32 splits=5,0,17 extra_rows=40 beyond=large N=24 K=40 seed=1030
grouped_gemm kind=block layout=NT dtype_d=f32 splits=5,0,17 extra_rows=40 beyond=large N=24 K=40 seed=1031
linear_forward recipe=tensor_current splits=5,0,17 extra_rows=40 beyond=large N=24 K=40 seed=1032
linear_dgrad recipe=block bias=1 splits=5,0,17 extra_rows=40 beyond=large N=24 K=40 seed=1033
linear_wgrad recipe=tensor_current bias=1 splits=5,0,17 extra_rows=40 beyond=large N=24 K=40 seed=1034

# captured once, replayed with something changed; every tensor that an op reads is among what changes
quantize recipe=nvfp4 amax=given stochastic=1 splits=16,0,32 K=32 seed=1041 replay=3:data,splits,scales
dequantize recipe=block_1x128 splits=5,0,17 K=136 seed=1042 replay=3:data,splits,scales
dequantize recipe=nvfp4 splits=16,0,32 K=32 seed=1043 replay=3:data,splits,scales
dequantize recipe=mxfp8 direction=columnwise splits=32,0,64 K=64 seed=1044 replay=3:data,splits,scales
swizzle recipe=mxfp8 splits=32,0,64 K=64 seed=1045 replay=3:data,splits,scales
unswizzle recipe=nvfp4 splits=16,0,32 K=32 seed=1046 replay=3:data,splits,scales
splits_to_offsets_multi splits=3,0,5 outputs=1:i64,24:i32:inclusive replay=3:splits
splits_to_offsets_2d first=3,0,5 last=8,7,2 replay=3:splits
delayed_update tensors=5 length=4 reduced=1 seed=1047 replay=3:data,scales
grouped_dbias splits=5,0,17 accumulate=1 K=40 seed=1048 replay=3:data,splits
grouped_gemm kind=bf16 arch=sm100 alpha=2,0.5,1 beta=0.5,1,2 bias=1 splits=5,0,17 N=24 K=40 seed=1049 replay=3:data,splits
grouped_gemm kind=nvfp4 splits=16,0,32 N=32 K=64 seed=1053 replay=3:data,splits,scales
grouped_gemm kind=nvfp4 layout=NN splits=16,0,32 N=32 K=64 seed=1054 replay=3:data,splits,scales
grouped_gemm kind=nvfp4 layout=NT dtype_d=f32 splits=16,0,32 N=32 K=64 seed=1055 replay=3:data,splits,scales
linear_forward recipe=nvfp4 noop=1 splits=16,0,32 N=32 K=64 seed=1056 replay=3:data,splits,scales
linear_dgrad recipe=tensor_delayed bias=1 splits=17,0,20 N=24 K=40 seed=1050 replay=3:data,splits,scales
linear_wgrad recipe=tensor_delayed bias=1 accumulate=1 splits=17,0,20 N=24 K=40 seed=1051 replay=3:data,splits,scales
linear_forward recipe=tensor_delayed bias=1 noop=0 splits=17,0,20 N=24 K=40 seed=1052 replay=3:data,splits,scales,noop
quantize recipe=block_1x128 pow2=1 splits=128,256,0 K=256 seed=301 replay=8:data,splits
quantize recipe=block_128x128 noop=0 splits=128,128 K=128 seed=302 replay=5:data,noop
quantize recipe=tensor_current splits=33,0,65 K=64 seed=303 replay=8:data,splits
quantize recipe=tensor_delayed splits=33,0,65 K=64 seed=304 replay=4:scales
quantize recipe=mxfp8 noop=1 splits=128,0,128 K=64 seed=305 replay=6:data,splits,noop
splits_to_offsets splits=zipf(256,4096,7) stride=7168 replay=8:splits
grouped_gemm kind=bf16 splits=17,0,33,7 N=24 K=72 seed=310 replay=8:data,splits
grouped_gemm kind=bf16 layout=NT dtype_d=f32 beta=1 splits=17,0,33,7 N=24 K=72 seed=311 replay=8:data,splits
grouped_gemm kind=tensor splits=17,0,33,7 N=24 K=72 seed=312 replay=8:data,splits,scales
grouped_gemm kind=block dtype_d=f32 splits=9,0,17,3 N=136 K=144 seed=313 replay=5:data,splits
grouped_gemm kind=block layout=NT dtype_d=f32 splits=128,0,33,7 N=24 K=40 seed=314 replay=8:data,splits
grouped_gemm kind=bf16 splits=40x2 extra_rows=20 N=16 K=32 seed=315 replay=16:splits
splits_to_offsets_multi itype=i32 splits=7,0,3000,12 outputs=1:i32,7168:i64:inclusive,0:i64 replay=4:splits
splits_to_offsets_2d first=3,0,5,16 last=7,9,11,4 replay=4:splits
quantize recipe=nvfp4 two_dimensional=1 splits=48,0,16 K=64 seed=501 replay=4:data,splits
quantize recipe=nvfp4 hadamard=1 stochastic=1 splits=48,0,16 K=48 seed=502 replay=4:data,splits
quantize recipe=nvfp4 four_over_six=mse amax=given splits=48,0,16 K=48 seed=503 replay=4:data,splits,scales
quantize recipe=mxfp8 dbias=1 scale_layout=swizzled splits=128,0,128 K=64 seed=504 replay=4:data,splits
quantize recipe=tensor_delayed outputs=all dbias=1 splits=33,0,65 K=64 seed=505 replay=4:data,splits,scales
dequantize recipe=block_1x128 splits=128,0,256 K=136 seed=506 replay=4:data,splits,scales
dequantize recipe=tensor_current direction=columnwise splits=33,0,65 K=40 seed=507 replay=4:data,splits,scales
dequantize recipe=mxfp8 scale_layout=swizzled splits=128,0,256 K=64 seed=508 replay=4:data,splits,scales
dequantize recipe=nvfp4 splits=128,0,256 K=64 seed=509 replay=4:data,splits,scales
swizzle recipe=mxfp8 splits=128,0,256 K=96 seed=510 replay=4:data,splits
unswizzle recipe=nvfp4 splits=128,0,256 K=96 seed=511 replay=4:data,splits
delayed_update tensors=17 length=4 data=every_special seed=512 replay=4:data,scales
grouped_dbias accumulate=1 splits=17,0,65 K=40 seed=513 replay=4:data,splits
grouped_gemm kind=f16 bias=1 beta=1 splits=17,0,33,7 N=24 K=40 seed=514 replay=4:data,splits
grouped_gemm kind=tensor layout=NN split_accumulator=1 splits=17,0,33,7 N=40 K=24 seed=515 replay=4:data,splits,scales
grouped_gemm kind=mxfp8 splits=128,0,128 N=32 K=64 seed=516 replay=3:data,splits,scales
grouped_gemm kind=nvfp4 alpha=1,0.5,-2 splits=128,0,128 N=32 K=64 seed=517 replay=3:data,splits,scales
linear_dgrad recipe=tensor_current bias=1 splits=17,0,20 N=24 K=40 seed=518 replay=4:data,splits
linear_wgrad recipe=none accumulate=1 deferred=1 bias=1 splits=17,0,20 N=24 K=40 seed=519 replay=4:data,splits
linear_forward recipe=block noop=1 splits=17,0,20 N=24 K=144 seed=316 replay=5:data,noop

# one call of a layer, captured once, a replay for each edge of the splits with everything else changed too; then eagerly
scenario recipe=tensor_current steps=quantize itype=f16 pow2=1 splits=17,0,33,7 change=edges N=24 K=40 extra_rows=6 seed=410 replay=12:data,splits
scenario recipe=tensor_delayed steps=gradients grad_otype=e5m2 splits=17,0,33,7 change=edges N=24 K=40 extra_rows=6 seed=411 replay=12:data,splits,scales
scenario recipe=block steps=quantize eps=0.25 pow2=0 splits=128,0,128,128 change=edges N=24 K=48 seed=412 replay=12:data,splits
scenario recipe=block steps=gradients bias=1 grad_otype=e5m2 splits=128,0,128,128 change=edges N=48 K=24 seed=413 replay=12:data,splits
scenario recipe=mxfp8 steps=quantize splits=128,0,128,128 change=edges N=32 K=48 seed=414 replay=12:data,splits
scenario recipe=mxfp8 steps=gradients bias=1 splits=128,0,128,128 change=edges N=48 K=32 seed=415 replay=12:data,splits
scenario recipe=nvfp4 steps=quantize splits=128,0,128,128 change=edges N=16 K=48 seed=416 replay=12:data,splits
scenario recipe=nvfp4 steps=gradients bias=1 splits=128,0,128,128 change=edges N=48 K=16 seed=417 replay=12:data,splits
scenario recipe=block steps=weights splits=9,5 N=136 K=136 seed=418 replay=16:data,splits
scenario recipe=none steps=TN bias=1 splits=17,0,33,7 change=edges N=24 K=40 extra_rows=6 seed=420 replay=12:data,splits
scenario recipe=none steps=NN itype=f16 splits=17,0,33,7 change=edges N=24 K=40 extra_rows=6 seed=421 replay=12:data,splits
scenario recipe=none steps=NT accumulate=1 splits=17,0,33,7 change=edges N=24 K=40 extra_rows=6 seed=422 replay=12:data,splits
scenario recipe=none steps=NT dtype_d=bf16 splits=17,0,33,7 change=edges N=24 K=40 extra_rows=6 data=integers seed=423 replay=12:data,splits
scenario recipe=tensor_current steps=TN otype=e5m2 splits=17,0,33,7 change=edges N=24 K=40 extra_rows=6 seed=424 replay=12:data,splits,scales
scenario recipe=tensor_current steps=NN grad_otype=e5m2 splits=17,0,33,7 change=edges N=136 K=24 extra_rows=6 seed=425 replay=12:data,splits,scales
scenario recipe=tensor_current steps=NT grad_otype=e5m2 scales=pow2 splits=17,0,133,7 change=edges N=24 K=16 extra_rows=6 seed=426 replay=12:data,splits,scales
scenario recipe=block steps=TN splits=128,0,128,128 change=edges N=16 K=136 seed=427 replay=12:data,splits,scales
scenario recipe=block steps=NN grad_otype=e5m2 splits=128,0,128,128 change=edges N=136 K=16 seed=428 replay=12:data,splits,scales
scenario recipe=block steps=NT accumulate=1 splits=128,0,128,128 change=edges N=24 K=40 seed=429 replay=12:data,splits,scales
scenario recipe=mxfp8 steps=TN splits=128,0,128,128 change=edges N=32 K=32 seed=430 replay=12:data,splits,scales
scenario recipe=mxfp8 steps=NN splits=128,0,128,128 change=edges N=32 K=32 seed=431 replay=12:data,splits,scales
scenario recipe=mxfp8 steps=NT splits=128,0,128,128 change=edges N=32 K=32 seed=432 replay=12:data,splits,scales
scenario recipe=nvfp4 steps=TN splits=128,0,128,128 change=edges N=16 K=32 seed=433 replay=12:data,splits,scales
scenario recipe=nvfp4 steps=NN splits=128,0,128,128 change=edges N=32 K=16 seed=434 replay=12:data,splits,scales
scenario recipe=nvfp4 steps=NT splits=128,0,128,128 change=edges N=16 K=32 seed=435 replay=12:data,splits,scales
scenario recipe=none steps=forward bias=1 splits=17,0,33,7 change=edges N=24 K=40 extra_rows=6 seed=440 replay=12:data,splits
scenario recipe=none steps=dgrad bias=1 splits=17,0,33,7 change=edges N=24 K=40 extra_rows=6 seed=441 replay=12:data,splits
scenario recipe=none steps=wgrad bias=1 dtype_d=f16 itype=f16 splits=17,0,33,7 change=edges N=24 K=40 extra_rows=6 seed=442 replay=12:data,splits
scenario recipe=tensor_current steps=forward splits=17,0,33,7 change=edges N=24 K=40 extra_rows=6 seed=443 replay=12:data,splits
scenario recipe=tensor_delayed steps=forward,dgrad,wgrad bias=1 splits=17,0,33,7 change=edges N=24 K=40 extra_rows=6 seed=444 replay=12:data,splits,scales
scenario recipe=block steps=forward,dgrad,wgrad bias=1 splits=17,0,33,7 change=edges N=24 K=40 extra_rows=6 seed=445 replay=12:data,splits
scenario recipe=mxfp8 steps=forward,dgrad,wgrad bias=1 splits=32,0,64,16 change=edges N=32 K=64 extra_rows=16 seed=446 replay=12:data,splits
scenario recipe=nvfp4 steps=forward,dgrad,wgrad bias=1 splits=32,0,64,16 change=edges N=32 K=48 extra_rows=16 seed=447 replay=12:data,splits
# forward and backward in graphs that share nothing but the layer, in turn
scenario recipe=none steps=forward/dgrad,wgrad bias=1 warm=1 splits=17,0,33,7 N=24 K=40 seed=450 replay=8:data,splits
scenario recipe=tensor_current steps=forward/dgrad,wgrad grad_otype=e5m2 splits=17,0,33,7 N=24 K=40 seed=451 replay=8:data,splits
scenario recipe=block steps=forward/dgrad,wgrad bias=1 warm=1 splits=17,0,33,7 N=24 K=136 seed=452 replay=8:data,splits
scenario recipe=block steps=forward/dgrad/wgrad history=11 accumulate=1 splits=17,0,33,7 N=24 K=40 seed=453 replay=8:data,splits
# the weight gradient right behind the input gradient, all layouts behind one another, in workspaces that hold what was there
scenario recipe=none steps=dgrad,wgrad workspace=kept splits=17,0,33,7 N=24 K=40 seed=460 replay=6:data,splits
scenario recipe=none steps=dgrad,wgrad workspace=shared splits=17,0,33,7 N=24 K=40 seed=461 replay=6:data,splits
scenario recipe=tensor_current steps=dgrad,wgrad workspace=shared splits=17,0,33,7 N=24 K=40 seed=462 replay=6:data,splits
scenario recipe=block steps=dgrad,wgrad workspace=kept splits=17,0,33,7 N=24 K=40 seed=463 replay=6:data,splits
scenario recipe=block steps=dgrad,wgrad workspace=shared splits=17,0,33,7 N=24 K=40 seed=464 replay=6:data,splits
scenario recipe=block steps=dgrad,wgrad warm=1 splits=17,0,33,7 N=24 K=40 seed=465 replay=4
scenario recipe=none steps=TN,NN,NT workspace=shared splits=17,0,33,7 N=24 K=40 seed=466 replay=6:data,splits
scenario recipe=tensor_current steps=TN,NN,NT workspace=shared grad_otype=e5m2 splits=17,0,33,7 N=24 K=40 seed=467 replay=6:data,splits,scales
scenario recipe=block steps=TN,NN,NT workspace=kept splits=17,0,33,7 N=24 K=40 seed=468 replay=6:data,splits,scales
scenario recipe=block steps=NN,NT/NN,NT workspace=shared splits=17,0,33,7 N=24 K=40 seed=469 replay=6:data,splits,scales
# calls of many kinds in one graph
scenario recipe=tensor_current steps=weights,quantize,gradients,TN,NN,NT,forward,dgrad,wgrad bias=1 splits=5,0,9 N=16 K=24 seed=476 replay=4:data,splits,scales
scenario recipe=block steps=weights,forward,TN/gradients,dgrad,NT modules=2 order=streams bias=1 splits=5,0,9 N=16 K=24 seed=477 replay=4:data,splits,scales
# two layers with as many groups, alive at once
scenario recipe=none steps=forward/dgrad,wgrad modules=2 splits=17,0,33,7 N=24 K=40 seed=470 replay=5:data,splits
scenario recipe=block steps=forward/dgrad,wgrad modules=2 order=interleaved bias=1 splits=17,0,33,7 N=24 K=40 seed=471 replay=5:data,splits
scenario recipe=none steps=forward/dgrad,wgrad modules=2 order=streams splits=17,0,33,7 N=24 K=40 seed=472 replay=5:data,splits
scenario recipe=block steps=forward,dgrad,wgrad modules=2 order=streams workspace=shared history=5 splits=17,0,33,7 N=24 K=40 seed=473 replay=5:data,splits
scenario recipe=tensor_current steps=TN,NN,NT modules=2 order=interleaved splits=17,0,33,7 N=24 K=40 seed=474 replay=5:data,splits,scales
scenario recipe=block steps=TN/NN/NT modules=2 order=streams splits=17,0,33,7 N=24 K=40 seed=475 replay=5:data,splits,scales
# the skip flag: 0, 1, 1, 0, 1 while the weights change, data and scales of every group and direction
scenario recipe=tensor_current steps=weights,forward noop=0 splits=17,0,33 N=24 K=40 seed=480 replay=10:data,noop
scenario recipe=tensor_delayed steps=weights,forward noop=0 splits=17,0,33 N=24 K=40 seed=481 replay=10:data,scales,noop
scenario recipe=block steps=weights,forward noop=0 splits=17,0,33 N=136 K=24 seed=482 replay=10:data,noop
scenario recipe=mxfp8 steps=weights,forward noop=0 splits=32,0,16 N=32 K=64 seed=483 replay=10:data,noop
scenario recipe=nvfp4 steps=weights,forward noop=0 splits=32,0,16 N=32 K=64 seed=484 replay=10:data,noop
scenario recipe=block steps=weights,forward/forward noop=0.5 splits=17,0,33 N=24 K=40 seed=485 replay=5:data,splits,noop
scenario recipe=block steps=weights,forward modules=2 order=interleaved noop=1 splits=17,0,33 N=24 K=40 seed=486 replay=5:data,splits,noop
# weight gradients that are put off, over microbatches: the order shows in what f32 sums keep
scenario recipe=none steps=forward,forward/dgrad,wgrad/dgrad,wgrad deferred=1 accumulate=1 splits=17,0,33,7 N=24 K=40 seed=490 replay=5:data,splits
scenario recipe=block steps=wgrad,wgrad,wgrad deferred=1 accumulate=rest bias=1 splits=17,0,33,7 N=24 K=40 seed=491 replay=5:data,splits
scenario recipe=tensor_current steps=wgrad/wgrad deferred=1 accumulate=1 splits=17,0,33,7 N=24 K=40 seed=492 replay=5:data,splits
scenario recipe=none steps=NT,NT,NT accumulate=rest splits=17,0,33,7 change=edges N=24 K=40 extra_rows=6 seed=493 replay=12:data,splits

# more than 32 launches of one graph: a product, a quantize, offsets, a layer
grouped_gemm kind=bf16 splits=5,0,9 N=8 K=8 seed=1201 replay=40:data,splits
quantize recipe=block_1x128 noop=0 splits=5,0,9 K=24 seed=1202 replay=40:data,splits,noop
splits_to_offsets splits=5,0,9 stride=7 replay=40:splits
scenario recipe=none steps=forward/dgrad,wgrad splits=5,0,9 N=8 K=8 seed=1203 replay=36:data,splits
# an option that is a subnormal number, where 0 gives other bits; one factor a group, of as many groups as a warp has lanes and more
quantize recipe=tensor_current itype=f32 eps=1e-40 splits=9,0,5 K=24 data=zeros seed=1211
quantize recipe=block_1x128 itype=f32 eps=1e-40 splits=9,0,5 K=136 data=zeros seed=1212
quantize recipe=block_128x128 itype=f32 eps=1e-40 splits=9,0,5 K=136 data=zeros seed=1213
grouped_gemm kind=bf16 dtype_d=f32 beta=1e-40 addends=every_special splits=9,0,17 N=24 K=48 seed=1214
grouped_gemm kind=tensor dtype_d=f32 beta=-1e-39 addends=every_special splits=9,0,17 N=24 K=48 seed=1215
grouped_gemm kind=bf16 arch=sm100 dtype_d=f32 alpha=1,1e-40,3 beta=1e-40,1,1e-39 addends=every_special splits=9,4,17 N=24 K=48 seed=1216
grouped_gemm kind=bf16 arch=sm100 dtype_d=f32 alpha=1,0.5,-2,3,0.25,7,-1,5,0.75 beta=2,1,-1,0.5,3,0.25,-3,4,-0.5 splits=3,0,2,5,4,1,3,2,6 N=8 K=24 seed=1217
grouped_gemm kind=nvfp4 alpha=1,0.5,-2,3,0.25,7 splits=16,0,16,16,0,32 N=16 K=32 seed=1218
grouped_gemm kind=bf16 arch=sm100 dtype_d=f32 alpha=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33 splits=33x1 N=8 K=8 seed=1219
# no products, and a bias that is added all the same
grouped_gemm kind=bf16 bias=1 splits=20,0,9 N=8 K=0 seed=1221
grouped_gemm kind=f16 bias=1 dtype_d=f32 splits=20,0,9 N=8 K=0 seed=1222
grouped_gemm kind=tensor bias=1 beta=1 splits=20,0,9 N=16 K=0 seed=1223
grouped_gemm kind=block bias=1 splits=20,0,9 N=16 K=0 seed=1224
grouped_gemm kind=mxfp8 bias=1 splits=32,0,16 N=32 K=0 seed=1225
grouped_gemm kind=nvfp4 bias=1 splits=32,0,16 N=32 K=0 seed=1226
# more groups than 8192; offsets beyond 2^53 that no double is
splits_to_offsets splits=8193x3
splits_to_offsets splits=16385x2 stride=7
splits_to_offsets splits=3,1,9007199254740990,1
splits_to_offsets_multi splits=8193x3 outputs=1:i32,7:i64
splits_to_offsets_multi splits=3,1,9007199254740990,1 outputs=1:i64,3:i64:inclusive
splits_to_offsets_2d first=8193x3 last=8193x5
splits_to_offsets_2d first=1,3,94906267,1 last=1,1,94906267,1
)";

// Sizes that take a while.
const std::string_view kFullLines = R"(
# state that breaks after very many calls: more than 2^16 of them in one process, more than 20,000 of one quantization and one product
splits_to_offsets splits=3,0,5 stride=7 replay=66000:splits
quantize recipe=tensor_current splits=1,0,2 K=4 seed=895 replay=21000:data
grouped_gemm kind=bf16 splits=1,0,2 N=4 K=4 seed=896 replay=21000:data
# more output tiles than an H200 has multiprocessors, long K, scales that differ: f32 and bf16 output take different kernels
grouped_gemm kind=block dtype_d=f32 splits=8x128 N=2304 K=2048 data=block_scales seed=901
grouped_gemm kind=block splits=8x128 N=2304 K=2048 data=block_scales seed=902
grouped_gemm kind=block weight_block=1x128 dtype_d=f32 splits=128,0,640,128,128 N=1152 K=2048 data=block_scales seed=903
# sizes of the vendor's own tests
grouped_gemm kind=bf16 dtype_d=f32 splits=4x64 N=256 K=256 seed=910
grouped_gemm kind=bf16 layout=NN splits=4x128 N=512 K=256 seed=911
grouped_gemm kind=bf16 layout=NT dtype_d=f32 beta=1 splits=8x64 N=512 K=256 seed=912
grouped_gemm kind=f16 dtype_d=f16 splits=127 N=512 K=128 seed=913
grouped_gemm kind=bf16 splits=8x15 N=512 K=128 seed=914
grouped_gemm kind=bf16 splits=8x1027 N=512 K=128 seed=915
grouped_gemm kind=mxfp8 splits=8x128 N=512 K=128 seed=916
grouped_gemm kind=mxfp8 splits=128,256 N=2880 K=288 seed=917
grouped_gemm kind=tensor dtype_d=f32 splits=3x128 N=256 K=384 seed=918
grouped_gemm kind=tensor splits=3x160 N=288 K=416 seed=919
grouped_gemm kind=block splits=128,256,384 N=512 K=640 seed=920
grouped_gemm kind=nvfp4 splits=3x128 N=256 K=384 seed=921
grouped_gemm kind=bf16 layout=NT splits=4x0 N=256 K=256 seed=922
grouped_gemm kind=mxfp8 layout=NT dtype_d=f32 beta=1 splits=4x0 N=256 K=256 seed=923
# rows that nothing divides, one expert that takes nearly everything
grouped_gemm kind=bf16 dtype_d=f32 splits=1000,3,0,4097,128,7,250,865 N=136 K=200 seed=930
grouped_gemm kind=tensor splits=1000,3,0,4097,128,7,250,865 N=144 K=208 seed=931
grouped_gemm kind=block dtype_d=f32 splits=128,0,4096,128,384 N=264 K=400 seed=932
grouped_gemm kind=bf16 layout=NT dtype_d=f32 splits=4096,0,8192,4096 N=40 K=72 seed=933
grouped_gemm kind=block layout=NT dtype_d=f32 beta=1 splits=4000,0,8209,4175 N=40 K=72 seed=934
grouped_gemm kind=tensor split_accumulator=1 layout=NT dtype_d=f32 splits=16384 N=72 K=40 seed=935
grouped_gemm kind=bf16 layout=NT dtype_d=f32 splits=8000,0,4 N=16 K=24 data=integers seed=936
grouped_gemm kind=bf16 dtype_d=f32 splits=zipf(1024,4096,1) N=16 K=64 seed=940
grouped_gemm kind=block splits=zipf(1024,4096,2) N=16 K=144 seed=941
grouped_gemm kind=tensor layout=NT dtype_d=f32 splits=zipf(1024,8192,3) N=16 K=32 seed=942
quantize recipe=block_1x128 splits=zipf(1024,65536,1) K=128 seed=950
quantize recipe=block_128x128 splits=zipf(1024,65536,2) K=128 seed=951
quantize recipe=mxfp8 splits=zipf(256,65536,3) K=128 seed=952
quantize recipe=tensor_current splits=zipf(256,65536,4) K=128 seed=953
quantize recipe=block_1x128 pow2=1 splits=8x512 K=7168 seed=954
quantize recipe=block_128x128 pow2=1 splits=8x512 K=7168 seed=955
quantize recipe=mxfp8 splits=8x512 K=7168 scale_layout=swizzled seed=956
quantize recipe=nvfp4 splits=8x256 K=7168 seed=957
quantize recipe=nvfp4 hadamard=1 sign_mask=45576 splits=8x256 K=2048 seed=958
quantize recipe=block_1x128 R=993 K=512 seed=959
quantize recipe=block_1x128 R=1024 K=1 seed=960
quantize recipe=block_1x128 R=1 K=65537 seed=961
quantize recipe=block_128x128 R=65537 K=3 seed=962
quantize recipe=tensor_delayed itype=f32 R=4096 K=1024 data=full_exponent scales=ones seed=963
quantize recipe=block_1x128 itype=f32 dbias=1 splits=4096,0,1000 K=256 data=adversarial_dbias seed=964
splits_to_offsets splits=zipf(65536,1000000000,9) stride=7168
# 3 * 2^22 words of each kind of output: a fault in one of 2^22 shows. Short rows and columns have many scales
quantize recipe=block_1x128 R=2097153 K=2 seed=980
quantize recipe=block_1x128 pow2=1 R=2 K=2097153 seed=981
quantize recipe=mxfp8 R=1048577 K=3 seed=982
quantize recipe=mxfp8 scale_layout=swizzled R=3 K=1048577 seed=983
quantize recipe=nvfp4 R=1048578 K=2 seed=984
quantize recipe=nvfp4 scale_layout=swizzled R=2 K=1048578 seed=985
quantize recipe=tensor_current otype=e5m2 R=2049 K=2049 seed=986
dequantize recipe=block_1x128 dtype_d=bf16 R=4097 K=1025 seed=987
dequantize recipe=mxfp8 direction=columnwise scale_layout=swizzled R=1025 K=4097 seed=988
dequantize recipe=nvfp4 dtype_d=f32 R=2050 K=2050 seed=989
grouped_gemm kind=f16 splits=2048,0,2049 N=1032 K=16 seed=990
grouped_gemm kind=tensor splits=2048,0,2064 N=1024 K=16 seed=991
grouped_gemm kind=block dtype_d=f32 splits=2048,0,2064 N=1024 K=16 seed=992
grouped_gemm kind=mxfp8 splits=2048,0,2064 N=1024 K=32 seed=993
grouped_gemm kind=nvfp4 splits=2048,0,2064 N=1024 K=32 seed=994
quantize recipe=block_1x128 direction=rowwise R=3500001 K=1 seed=1101
quantize recipe=block_1x128 pow2=1 direction=columnwise R=1 K=3500001 seed=1102
quantize recipe=mxfp8 direction=rowwise scale_layout=swizzled R=3300003 K=1 seed=1103
quantize recipe=mxfp8 direction=columnwise R=1 K=3300003 seed=1104
quantize recipe=nvfp4 direction=rowwise R=3500002 K=2 seed=1105
quantize recipe=nvfp4 direction=columnwise scale_layout=swizzled R=2 K=3500002 seed=1106
grouped_gemm kind=bf16 layout=NN splits=2048,0,1400 N=16 K=1032 seed=1107
grouped_gemm kind=f16 layout=NN dtype_d=f16 splits=4096,0,2305 N=16 K=1032 seed=1108
grouped_gemm kind=tensor layout=NN split_accumulator=1 dtype_d=f32 splits=2400,0,2192 N=16 K=1024 seed=1109
grouped_gemm kind=mxfp8 layout=NN splits=2400,0,2208 N=32 K=1024 seed=1110
grouped_gemm kind=nvfp4 layout=NN dtype_d=f32 splits=4096,0,2304 N=32 K=1024 seed=1111
# so many words of what is no quantization and no single product
swizzle recipe=mxfp8 R=8192 K=24704 seed=1112
swizzle recipe=mxfp8 direction=columnwise R=24704 K=8192 seed=1113
swizzle recipe=nvfp4 R=4096 K=24704 seed=1114
swizzle recipe=nvfp4 direction=columnwise R=24704 K=4096 seed=1115
unswizzle recipe=mxfp8 R=8192 K=24704 seed=1116
unswizzle recipe=mxfp8 direction=columnwise R=24704 K=8192 seed=1117
unswizzle recipe=nvfp4 R=4096 K=24704 seed=1118
unswizzle recipe=nvfp4 direction=columnwise R=24704 K=4096 seed=1119
grouped_dbias splits=1025x1 K=4096 seed=1120
grouped_dbias itype=f16 accumulate=1 splits=1025x1 K=4096 seed=1121
grouped_dbias itype=f32 splits=1,1024x1 K=4097 seed=1122
quantize recipe=tensor_delayed dbias=1 direction=rowwise splits=1025x1 K=4096 seed=1123
quantize recipe=mxfp8 itype=f16 dbias=1 direction=rowwise splits=1025x1 K=4096 seed=1124
quantize recipe=block_1x128 itype=f32 dbias=1 direction=rowwise splits=1025x1 K=4096 seed=1125
delayed_update tensors=4097 length=1025 seed=1126
delayed_update algorithm=most_recent otype=e5m2 tensors=4097 length=1025 seed=1127
delayed_update bulk=0 tensors=1025 length=4097 seed=1128
linear_forward recipe=none splits=513,0,512 N=4096 K=8 seed=1129
linear_forward recipe=block splits=513,0,512 N=4096 K=16 seed=1130
linear_forward recipe=tensor_current splits=513,0,512 N=4096 K=16 seed=1131
linear_dgrad recipe=none itype=f16 splits=513,0,512 N=8 K=4096 seed=1132
linear_dgrad recipe=tensor_delayed splits=513,0,512 N=16 K=4096 seed=1133
linear_dgrad recipe=mxfp8 splits=544,0,512 N=32 K=4096 seed=1134
linear_wgrad recipe=none splits=5,0 N=512 K=4096 seed=1135
linear_wgrad recipe=block dtype_d=bf16 splits=16,0 N=512 K=4096 seed=1136
linear_wgrad recipe=nvfp4 splits=32,0 N=512 K=4096 seed=1137
splits_to_offsets splits=1048576x3 stride=7
# a step of training in graphs, larger and for longer
scenario recipe=block steps=forward/dgrad,wgrad modules=2 order=streams bias=1 splits=128,0,64 N=136 K=144 seed=970 replay=3:data,splits
scenario recipe=none steps=forward/dgrad,wgrad modules=2 order=interleaved bias=1 splits=zipf(64,128,5) N=16 K=24 seed=971 replay=32:data,splits
scenario recipe=tensor_current steps=forward,dgrad,wgrad workspace=shared history=7 splits=one(16,64,15) N=24 K=40 seed=972 replay=32:data,splits
scenario recipe=block steps=dgrad,wgrad workspace=shared accumulate=1 splits=8x16 N=24 K=40 seed=973 replay=64:data,splits
scenario recipe=block steps=TN,NN,NT modules=2 order=streams workspace=shared splits=zipf(32,128,6) N=24 K=40 seed=974 replay=16:data,splits,scales
)";

}  // namespace assay::conformance
