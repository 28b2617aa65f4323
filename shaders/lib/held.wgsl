// Vectors of four that a lane holds of a row: enough for 768 or 1,024 columns a subgroup of 32, or 4,096 a workgroup.
#if slim
const HELD: u32 = 6u;
#elif narrow
const HELD: u32 = 8u;
#else
const HELD: u32 = 4u;
#endif
