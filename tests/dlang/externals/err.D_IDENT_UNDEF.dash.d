/* A module with a dash is no difference of two names.
 * @image: kernel amd64
 */
BEGIN { trace(kernel-amd64`ncpu); }
