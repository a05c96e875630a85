#include "tool/cli/options.h"
