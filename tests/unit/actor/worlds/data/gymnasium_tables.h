/* Made by tests/oracle/gymnasium_tables.py with Gymnasium 1.4.0: hashes of transition tables with
 * their first states, and of masks. That program prints the hashed text of a world. */
/* clang-format off */
#define FROZENLAKE_4 .moves = 0x167be5d45101c36bu, .masks = 0xeec8bf6b40615c85u, .max_steps = 100, .twins = 0.0, .best = 0.7441902878292689, .threshold = 0.7
#define FROZENLAKE_8 .moves = 0xce9feb864c68cfb6u, .masks = 0x59575e0376ec5da5u, .max_steps = 200, .twins = 0.0, .best = 0.9132201502016288, .threshold = 0.85
#define FROZENLAKE_SURE .moves = 0xaae8b35af1616a62u, .masks = 0x59575e0376ec5da5u, .max_steps = 200, .twins = 0.0, .best = 1.0, .threshold = NAN
#define FROZENLAKE_LIKELY .moves = 0xb5d9dc7ffbd9a5dbu, .masks = 0xeec8bf6b40615c85u, .max_steps = 100, .twins = 0.0, .best = 0.8731132799540534, .threshold = NAN
#define FROZENLAKE_OWN .moves = 0x1f7cdb675820954cu, .masks = 0xe3f792332345345fu, .max_steps = 100, .twins = 0.0, .best = 1.9537022057154063, .threshold = NAN
#define FROZENLAKE_ROW .moves = 0x7138310492660d22u, .masks = 0x5bad97e795af2055u, .max_steps = 100, .twins = 0.0, .best = 1.0, .threshold = NAN
#define TAXI .moves = 0x066f3bab5390920du, .masks = 0xcd07de1c77e018c5u, .max_steps = 200, .twins = 0.0, .best = 7.930000000000001, .threshold = 8.0
#define TAXI_RAIN .moves = 0x5cf85ccd8000d54eu, .masks = 0x17b0230fbbb67b32u, .max_steps = 200, .twins = 0.0, .best = 3.954574516550827, .threshold = NAN
#define TAXI_STORM .moves = 0x6bce0f263311ab8au, .masks = 0x17b0230fbbb67b32u, .max_steps = 200, .twins = 0.0, .best = -33.57333615300047, .threshold = NAN
#define TAXI_FICKLE .moves = 0x2432ad96d9508128u, .masks = 0xfd5baf41d3448295u, .max_steps = 200, .twins = 0.3, .best = 8.379999999999997, .threshold = NAN
#define TAXI_MOODY .moves = 0x57697303d0106205u, .masks = 0x55b39d6af76a263bu, .max_steps = 200, .twins = 0.9, .best = 5.833999955537483, .threshold = NAN
/* clang-format on */
