"""Where the hook command used to be: settings that were written then still name it."""
